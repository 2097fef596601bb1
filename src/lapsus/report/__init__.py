"""What people look at: one self-contained page of a discovery or of any networks, and the live view of a training.

discovery_page(content)    report.html of a discovery
networks_page(networks)    the same for trained networks, several side by side
live.serve(run)            training as it happens, on this machine only
"""

from lapsus.report import findings as findings
from lapsus.report.discovery import DiscoveryContent, discovery_page
from lapsus.report.networks import networks_page

__all__ = ["DiscoveryContent", "discovery_page", "networks_page"]
