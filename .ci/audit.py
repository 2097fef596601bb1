"""Known vulnerabilities of what is installed beside this interpreter, by pip-audit, or that they cannot be known."""

import importlib.util
import json
import subprocess
import sys


def main() -> int:
    """0: all that could be looked up is clean; 1: something is not; 2: nothing could be looked up."""
    if importlib.util.find_spec("pip_audit") is None:
        print("Not audited: pip-audit is not installed, and cannot be without network access.")
        return 2
    command = [
        sys.executable,
        "-m",
        "pip_audit",
        "--local",
        "--skip-editable",
        "--progress-spinner",
        "off",
        "-f",
        "json",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        last = (done.stderr.strip().splitlines() or ["pip-audit said nothing"])[-1]
        print(f"Not audited: the list of known vulnerabilities cannot be reached from here ({last[:200]}).")
        return 2
    known = [package for package in packages if "skip_reason" not in package]
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    found = [(package, flaw) for package in known for flaw in package["vulns"]]
    for package, flaw in found:
        mended = ", ".join(flaw.get("fix_versions", [])) or "no version yet"
        print(f"{package['name']} {package['version']}: {flaw['id']} (mended in {mended})")
    if not known:
        print(f"Not audited: none of {len(unknown)} packages is known to the list that can be reached from here.")
        return 2
    left_out = ", ".join(unknown) or "none"
    print(f"{len(known)} packages looked up, {len(found)} vulnerabilities; not in the list: {left_out}.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
