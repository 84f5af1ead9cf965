"""Make the objects that the operator writes: the check's Job and the Deployment's annotations.

Pure: they take observed objects and give plain JSON mappings; `cluster` writes them. They know no framework.
"""
