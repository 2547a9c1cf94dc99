"""``dperm peers list | install NAME | remove NAME``: the methods of others and their homes."""

from __future__ import annotations

import sys

from dperm_cli.core import checks
from dperm_cli.core.errors import EXIT_OK, InputError
from dperm_cli.core.operands import Syntax
from dperm_cli.runner.peers import environments
from dperm_cli.runner.peers.catalogue import find_peer, list_peers

VERBS = ("list", "install", "remove")


def peers(arguments: list[str]) -> int:
    """Dispatch; ``install`` ends with an error of one line where pip cannot install."""
    words = Syntax(options={"--folder": "--folder"}).split(arguments)
    verb, names = checks.choice("peers", (words.operands or ("",))[0], VERBS), words.operands[1:]
    given = words.options.get("--folder")
    folder = environments.find_folder(None if given is None else checks.folder("--folder", given))
    if verb == "list":
        if names:
            raise InputError("peers list", " ".join(names), "takes no arguments")
        print(f"{'name':<18}{'here':<12}{'losses':<36}method")
        for name, peer in list_peers().items():
            python = environments.find_python(peer, folder)
            state = "no need" if peer.lock is None else "installed" if python else "-"
            losses = ", ".join(peer.about["losses"])
            print(f"{name:<18}{state:<12}{losses:<36}{peer.about['title']}")
        return EXIT_OK
    if len(names) != 1:
        raise InputError(f"peers {verb}", " ".join(names), "needs the name of one peer")
    peer = find_peer(names[0])
    if verb == "install":
        print(environments.install(peer, folder))
    else:
        was_there = environments.remove(peer, folder)
        print(f"{'removed' if was_there else 'not installed'}: {peer.name}", file=sys.stderr)
    return EXIT_OK
