"""A real one-node Kubernetes for a machine without a Docker daemon, as host processes under one state directory.

``main`` is the command line; ``lifecycle`` starts and stops the cluster with the parts of ``build`` (programs),
``pki`` (certificates), ``host`` (network, cgroups, mounts), ``daemons`` (processes), ``probes`` (what answers) and
``images``. ``names`` holds what these and the files in ``conf/`` call things; ``commands`` runs other programs.
Only the standard library is used: this runs before anything of the project is installed.
"""
