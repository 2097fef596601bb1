"""What people look at: one self-contained page of a discovery or of any runs, and the live view of a training.

discovery_page(discovery)      report.html of a discovery
runs_page(runs, output)        the same for trained networks, several side by side
live.serve(run)                training as it happens, on this machine only
"""

from lapsus.report.page import discovery_page, runs_page

__all__ = ["discovery_page", "runs_page"]
