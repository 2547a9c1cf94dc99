"""The command ``dperm``, also as ``python -m dperm_cli``."""

import os
import sys

_HELP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "core", "help_pages", "dperm.txt")


def main() -> int:
    """Entry point; returns the exit code.

    ``dperm --help`` alone shows its page at once, without importing anything for it.
    """
    if sys.argv[1:] in (["--help"], ["-h"], ["help"]) and _show_help():
        return 0
    from dperm_cli.cli import main as run_command

    return run_command()


def _show_help() -> bool:
    """Whether the page was written as it should be; if not, ``cli.main`` says what is wrong."""
    from dperm_cli import __version__

    if sys.stdin is None or sys.stdout is None or sys.stderr is None:  # closed by the caller
        return False
    try:
        with open(_HELP, encoding="utf-8") as file:
            page = file.read().replace("{version}", __version__).rstrip("\n") + "\n"
        data = page.replace("\n", os.linesep).encode(sys.stdout.encoding)
        return os.write(sys.stdout.fileno(), data) == len(data)
    except (OSError, ValueError, LookupError):
        return False


if __name__ == "__main__":
    sys.exit(main())
