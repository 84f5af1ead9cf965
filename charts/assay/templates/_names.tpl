{{/* Names and labels. Every name comes from the release, so two releases never meet. */}}

{{/* Cut at 40: the longest suffix is "-modelvariant-edit", and a name of an object may have 63 characters where it becomes a label. */}}
{{- define "assay.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "assay.operatorName" -}}
{{- printf "%s-operator" (include "assay.name" .) -}}
{{- end -}}

{{/* Cluster-scoped names carry the namespace too: releases of the same name may exist in two of them. */}}
{{- define "assay.clusterName" -}}
{{- printf "%s:%s" .Release.Namespace (include "assay.name" .) -}}
{{- end -}}

{{- define "assay.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "assay.name" .) -}}
{{- end -}}

{{- define "assay.operatorServiceAccount" -}}
{{- .Values.operator.serviceAccount.name | default (include "assay.operatorName" .) -}}
{{- end -}}

{{/* Selectors: (list context component). They can never change, so they hold no version. */}}
{{- define "assay.selector" -}}
{{- $context := index . 0 -}}
app.kubernetes.io/name: {{ $context.Chart.Name }}
app.kubernetes.io/instance: {{ $context.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "assay.labels" -}}
{{- $context := index . 0 -}}
{{ include "assay.selector" . }}
app.kubernetes.io/version: {{ $context.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $context.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $context.Chart.Name $context.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* An image's reference: (list context image). */}}
{{- define "assay.image" -}}
{{- $context := index . 0 -}}
{{- $image := index . 1 -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository ($image.tag | default $context.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}
