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
{{- list "ASSAY_MODEL_URI" "ASSAY_MODEL_DIGEST" "ASSAY_MODEL_PRECISION" "ASSAY_VARIANT" "ASSAY_BASE_MODEL_URI" "ASSAY_BASE_MODEL_DIGEST" "ASSAY_CPU_LIMIT_MILLICORES" "ASSAY_MEMORY_LIMIT_BYTES" "ASSAY_CACHE_DIR" "ASSAY_DRAIN_DELAY_S" "ASSAY_DRAIN_TIMEOUT_S" "ASSAY_DRAIN_STORE_TIMEOUT_S" "ASSAY_DRAIN_TRACES_TIMEOUT_S" "ASSAY_HOST" "ASSAY_PORT" | toJson -}}
{{- end -}}

{{/* Whether a setting is given, as "true" or nothing: it may also come from a Secret, through extraEnv. Takes a list: its name, the context. */}}
{{- define "assay.isSet" -}}
{{- $name := index . 0 -}}
{{- $values := (index . 1).Values -}}
{{- $isSet := index $values.settings $name -}}
{{- range $values.extraEnv -}}
{{- if eq .name (printf "ASSAY_%s" $name) -}}
{{- $isSet = true -}}
{{- end -}}
{{- end -}}
{{- if $isSet -}}true{{- end -}}
{{- end -}}

{{/* The value of `drain` whose seconds a stopping pod needs after its last answer, or nothing. Answers and traces are flushed at the same time: the longer one counts. */}}
{{- define "assay.flush" -}}
{{- $flush := "" -}}
{{- $longest := 0 -}}
{{- range $value, $setting := dict "storeTimeoutSeconds" "STORE_URI" "tracesTimeoutSeconds" "TRACES_ENDPOINT" -}}
{{- $seconds := index $.Values.drain $value | int -}}
{{- if and (include "assay.isSet" (list $setting $)) (gt $seconds $longest) -}}
{{- $flush = $value -}}
{{- $longest = $seconds -}}
{{- end -}}
{{- end -}}
{{- $flush -}}
{{- end -}}

{{/* Seconds a stopping pod is given. 5: closing connections and leaving the interpreter. */}}
{{- define "assay.graceNeeded" -}}
{{- $flush := get .Values.drain (include "assay.flush" .) | default 0 -}}
{{- add (int .Values.drain.delaySeconds) (int .Values.drain.timeoutSeconds) (int $flush) 5 -}}
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
