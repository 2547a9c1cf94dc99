"""The doors to the outside: Python, plug-ins, papers, user files and the terminal."""
