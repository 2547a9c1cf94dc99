"""The statement on a released model: for those who sign it, and for the registry of deployments.

Everything here is a function of a ``Publishable`` and of the declared answers of a person.
"""
