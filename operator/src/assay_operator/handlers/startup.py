"""Configure kopf: it logs in and watches, and does nothing else for us."""

from typing import Any

import kopf

from assay_operator.constants import CHECK_COMPONENT, COMPONENT_LABEL, TARGET_LABEL, VARIANT_LABEL
from assay_operator.settings import Settings

WATCH_GRACE = 1.2  # a watch that the server has not ended in this many times its timeout is dead
CONNECT_TIMEOUT_S = 30


def kopf_settings(settings: Settings) -> kopf.OperatorSettings:
    """Kopf's settings: own events, no peering, no scanning for resources, bounded waits, only what concerns us."""
    made = kopf.OperatorSettings()
    made.posting.enabled = False
    made.peering.standalone = True
    made.scanning.disabled = True
    made.watching.server_timeout = settings.watch_timeout_seconds
    made.watching.client_timeout = settings.watch_timeout_seconds * WATCH_GRACE
    made.watching.connect_timeout = CONNECT_TIMEOUT_S
    made.networking.request_timeout = settings.request_timeout_seconds
    made.watching.label_selectors["apps", "deployments"] = f"{TARGET_LABEL}=true"
    made.watching.label_selectors["", "v1", "pods"] = f"{TARGET_LABEL}=true"
    made.watching.label_selectors["batch", "jobs"] = f"{COMPONENT_LABEL}={CHECK_COMPONENT},{VARIANT_LABEL}"
    return made


def register_login(registry: kopf.OperatorRegistry) -> None:
    """Log in as the pod's ServiceAccount, or else as the kubeconfig says."""

    @kopf.on.login(registry=registry)
    def login(**kwargs: Any) -> kopf.ConnectionInfo | None:  # noqa: ANN401 - whatever kopf passes is passed on
        return kopf.login_with_service_account(**kwargs) or kopf.login_with_kubeconfig(**kwargs)
