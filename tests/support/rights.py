"""What the chart lets whom do: installed in a namespace, less one right if need be; and what requests need."""

import json
import re
from collections.abc import Iterable
from typing import NamedTuple

from support.apiserver import ApiServer
from support.chart import Chart
from support.controllers import Namespace
from support.fault_proxy import Seen

PLACEHOLDER = "the-namespace-of-the-release"
_PATH = re.compile(
    r"^/(?:api/v1|apis/(?P<group>[^/]+)/[^/]+)(?:/namespaces/[^/]+)?"
    r"/(?P<resource>[a-z]+)(?:/(?P<name>[^/]+)(?:/(?P<sub>[a-z]+))?)?$"
)
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Right(NamedTuple):
    """One verb on one resource."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{'.' + self.group if self.group else ''}"


def rights_of(role: dict) -> set[Right]:
    """What a Role or ClusterRole grants."""
    return {
        Right(group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def used(seen: Iterable[Seen]) -> set[Right]:
    """What the requests needed. Paths that name no resource (discovery) need nothing."""
    return {right for one in seen if (right := _right(one)) is not None}


def _right(one: Seen) -> Right | None:
    found = _PATH.match(one.path)
    if found is None:
        return None
    reading = "watch" if one.watch else "get" if found["name"] else "list"
    resource = f"{found['resource']}/{found['sub']}" if found["sub"] else found["resource"]
    return Right(found["group"] or "", resource, _VERBS.get(one.method, reading))


class Rendered:
    """The objects of the chart that say who may do what: the operator's rights, and the guard if it is asked for."""

    def __init__(self, chart: Chart, scope: str, *, guard: bool = False) -> None:
        rights = {"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
        guards = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
        values = ("--set", f"operator.scope={scope}", "--set", f"guard.enabled={str(guard).lower()}")
        self._objects = [
            item
            for item in chart.render(*values, namespace=PLACEHOLDER)
            if item["kind"] in guards or (item["kind"] in rights and item["metadata"]["name"].endswith("-operator"))
        ]

    @property
    def role(self) -> dict:
        """The one Role or ClusterRole."""
        (role,) = (item for item in self._objects if item["kind"] in ("Role", "ClusterRole"))
        return role

    def install(self, api: ApiServer, namespace: Namespace, without: Right | None = None) -> str:
        """Create the objects, less one right; return a token of the operator's ServiceAccount."""
        for item in self._in(namespace):
            if item["kind"] in ("Role", "ClusterRole") and without is not None:
                item["rules"] = [less for rule in item["rules"] if (less := _less(rule, without))["verbs"]]
            api.create(_collection(item), item)
        return token_of(namespace, "assay-operator")

    def uninstall(self, api: ApiServer, namespace: Namespace, kind: str) -> None:
        """Delete the objects of one kind."""
        for item in self._in(namespace):
            if item["kind"] == kind:
                api.delete(f"{_collection(item)}/{item['metadata']['name']}")

    def _in(self, namespace: Namespace) -> list[dict]:
        return json.loads(json.dumps(self._objects).replace(PLACEHOLDER, namespace.name))


def token_of(namespace: Namespace, account: str) -> str:
    """A token of one of the namespace's ServiceAccounts."""
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    return namespace.api.create(namespace.path("v1", "serviceaccounts", account, "token"), request)["status"]["token"]


def _less(rule: dict, without: Right) -> dict:
    if without.group not in rule["apiGroups"] or without.resource not in rule["resources"]:
        return rule
    return rule | {"verbs": [verb for verb in rule["verbs"] if verb != without.verb]}


def _collection(item: dict) -> str:
    root = "/api/v1" if item["apiVersion"] == "v1" else f"/apis/{item['apiVersion']}"
    kind = item["kind"].lower()
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
    namespace = item["metadata"].get("namespace")
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"
