"""What every plug-in promises, and the checks that try it, without a test runner.

A file a kind: ``mechanism_contract.py``, ``loss_contract.py``, ... Each holds its promises in the
order in which they are tried. ``suite.py`` runs them on plug-ins from outside (``dperm check``);
the tests run the same ones on the shipped plug-ins.
"""
