"""The numbers of each proof page's worked example, by hand and by the package.

``pages.py`` reads the section and compares; the other files have one function for each page.
"""
