"""The documentation as a site: pages gathered from the repository, and built by MkDocs.

``python -m website.build`` builds it. Only ``website/build.py`` and ``website/hooks.py`` need
packages of the extra ``docs``.
"""
