{{/* What the operator may do, with the reason for each. The same rules in a namespace and in the whole cluster. */}}
{{- define "assay.operatorRules" -}}
# What is asked for. Never written: a ModelVariant's spec belongs to its author.
- apiGroups: [assay.dev]
  resources: [modelvariants]
  verbs: [get, list, watch]
# What came of it.
- apiGroups: [assay.dev]
  resources: [modelvariants/status]
  verbs: [patch, update]
# The target: read to render the check from its pod template; patched (server-side apply) with the annotations that name the model.
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, patch]
# The evidence that a model once passed: a revision that carries its digest.
- apiGroups: [apps]
  resources: [replicasets]
  verbs: [get, list]
# The checks: created, followed, and deleted while running when the question has changed.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, delete]
# A check's verdict stands in its pod's termination message; what serves is told by the service's pods.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch]
# One event for each transition.
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
{{- end -}}
