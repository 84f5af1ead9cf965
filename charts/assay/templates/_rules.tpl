{{/* What the operator may do, with the reason for each. The same rules in a namespace and in the whole cluster. */}}
{{- define "assay.operatorRules" -}}
# What is asked for: news of it, a fresh read in every pass, and the rivals for one target. Never written: spec belongs to its author.
- apiGroups: [assay.dev]
  resources: [modelvariants]
  verbs: [get, list, watch]
# What came of it: written whole, and only if nobody wrote in between.
- apiGroups: [assay.dev]
  resources: [modelvariants/status]
  verbs: [update]
# The target: read to render the check from its pod template; patched (server-side apply) with the annotations that name the model.
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, patch]
# The evidence that a model once passed: a revision of the target that carries its digest.
- apiGroups: [apps]
  resources: [replicasets]
  verbs: [list]
# The checks: created and followed; looked up when their name is taken; deleted while running when nobody asks any more.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, delete]
# A check's verdict stands in its pod's termination message; what serves, and since when it is ready, is told by the service's pods.
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
# Why a check's pod was never created: a quota, Pod Security, a LimitRange.
- apiGroups: [""]
  resources: [events]
  verbs: [list]
# One event for each transition.
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end -}}
