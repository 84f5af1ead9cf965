{{/* What all our pods have in common. */}}

{{/* The "restricted" Pod Security Standard; 10001 is the user of our images. */}}
{{- define "assay.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "assay.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* A value as the text of an environment variable: Helm reads every number as a float, and would write 8388608 as 8.388608e+06. */}}
{{- define "assay.text" -}}
{{- if and (kindIs "float64" .) (eq (float64 (int64 .)) .) -}}
{{- int64 . | toString | quote -}}
{{- else -}}
{{- toString . | quote -}}
{{- end -}}
{{- end -}}

{{/* Names of the environment that the chart itself sets, as a JSON list: neither `settings` nor `extraEnv` may set them again. */}}
{{- define "assay.ownEnvironment" -}}
{{- list "ASSAY_MODEL_URI" "ASSAY_MODEL_DIGEST" "ASSAY_MODEL_PRECISION" "ASSAY_VARIANT" "ASSAY_BASE_MODEL_URI" "ASSAY_BASE_MODEL_DIGEST" "ASSAY_CPU_LIMIT_MILLICORES" "ASSAY_MEMORY_LIMIT_BYTES" "ASSAY_CACHE_DIR" "ASSAY_DRAIN_DELAY_S" "ASSAY_DRAIN_TIMEOUT_S" "ASSAY_DRAIN_STORE_TIMEOUT_S" "ASSAY_HOST" "ASSAY_PORT" | toJson -}}
{{- end -}}

{{/* Whether answers are stored, as "true" or nothing: the URI may also come from a Secret, through extraEnv. */}}
{{- define "assay.stores" -}}
{{- $stores := .Values.settings.STORE_URI -}}
{{- range .Values.extraEnv -}}
{{- if eq .name "ASSAY_STORE_URI" -}}
{{- $stores = true -}}
{{- end -}}
{{- end -}}
{{- if $stores -}}true{{- end -}}
{{- end -}}

{{/* Seconds a stopping pod is given. 5: closing connections and leaving the interpreter. */}}
{{- define "assay.graceNeeded" -}}
{{- $store := ternary .Values.drain.storeTimeoutSeconds 0 (eq (include "assay.stores" .) "true") -}}
{{- add (int .Values.drain.delaySeconds) (int .Values.drain.timeoutSeconds) (int $store) 5 -}}
{{- end -}}

{{- define "assay.grace" -}}
{{- int .Values.terminationGracePeriodSeconds | default (include "assay.graceNeeded" . | int) -}}
{{- end -}}

{{/* A CPU quantity in thousandths of a core. */}}
{{- define "assay.millicores" -}}
{{- $quantity := toString . -}}
{{- if hasSuffix "m" $quantity -}}
{{- trimSuffix "m" $quantity | int -}}
{{- else -}}
{{- mulf (float64 $quantity) 1000 | int -}}
{{- end -}}
{{- end -}}
