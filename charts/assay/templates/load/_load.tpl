{{/* The load test: its scripts, its pod and the name that both share. */}}

{{/* Scripts as a map: keys of a ConfigMap hold no slash, so "lib/run.js" becomes "lib_run.js". */}}
{{- define "assay.loadScripts" -}}
{{- $files := .Files.Glob "files/k6/**" -}}
{{- if not $files -}}
{{- fail "\n\nThe chart lacks files/k6: run `make manifests`, or take a whole copy of the chart." -}}
{{- end -}}
{{- range $path, $content := $files }}
{{ trimPrefix "files/k6/" $path | replace "/" "_" }}: {{ $content | toString | quote }}
{{- end }}
{{- end -}}

{{/* A Job cannot be changed, so its name changes with whatever it runs. Needs 14 characters. */}}
{{- define "assay.loadName" -}}
{{- printf "%s-load-%s" (include "assay.name" .) (print (include "assay.loadPod" .) (include "assay.loadScripts" .) .Values.loadTest.run | sha256sum | trunc 8) -}}
{{- end -}}

{{/* Seconds after which it is stopped. 600: a pack fetched and classified with, images pulled; 150: k6 waits for the last answers, and sums up. */}}
{{- define "assay.loadDeadline" -}}
{{- $runs := ternary 16 1 (eq .Values.loadTest.scenario "breakpoint") -}}
{{- add 600 (mul $runs (add 150 (int .Values.loadTest.durationSeconds))) -}}
{{- end -}}

{{/* The pod's spec, without the volume of the scripts: that one has the name which is made from this. */}}
{{- define "assay.loadPod" -}}
{{- $url := printf "http://%s.%s.svc:%v" (include "assay.name" .) .Release.Namespace .Values.service.port -}}
restartPolicy: Never
automountServiceAccountToken: false
enableServiceLinks: false
# k6 sums up what it has seen when it is stopped.
terminationGracePeriodSeconds: 30
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.loadTest.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.loadTest.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
affinity:
  podAntiAffinity:
    # Softly: on a single node it still runs, and its summary says when it got too little CPU.
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "assay.selector" (list . "classifier") | nindent 14 }}
securityContext:
  {{- include "assay.podSecurity" . | nindent 2 }}
initContainers:
  # Makes the photos, and has the very packs that may answer classify them: the service's image has all it takes.
  - name: images
    image: {{ include "assay.image" (list . .Values.image) }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    command: [python, /scripts/images/generate.py]
    args:
      - --out=/images
      - --service={{ $url }}
      - --wait={{ .Values.startupDeadlineSeconds }}
      {{- range .Values.loadTest.models }}
      - {{ printf "--model=%s" . | quote }}
      {{- end }}
    env:
      - name: ASSAY_BASE_MODEL_URI
        value: {{ .Values.baseModel.uri | quote }}
      - name: ASSAY_BASE_MODEL_DIGEST
        value: {{ .Values.baseModel.digest | quote }}
      - name: ASSAY_CACHE_DIR
        value: /var/cache/assay
      {{- range $name, $value := .Values.settings }}
      - name: ASSAY_{{ $name }}
        value: {{ include "assay.text" $value }}
      {{- end }}
      {{- with .Values.extraEnv }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    resources:
      # Photos of 12 megapixels take 460 MiB while they are made.
      requests: {cpu: 100m, memory: 512Mi}
      limits: {memory: 1Gi}
    securityContext:
      {{- include "assay.containerSecurity" . | nindent 6 }}
    volumeMounts:
      - {name: scripts, mountPath: /scripts, readOnly: true}
      - {name: images, mountPath: /images}
      - {name: pack-cache, mountPath: /var/cache/assay}
      - {name: tmp, mountPath: /tmp}
containers:
  - name: k6
    image: {{ include "assay.image" (list . .Values.loadTest.image) }}
    imagePullPolicy: {{ .Values.loadTest.image.pullPolicy }}
    command: [/bin/sh, /scripts/run, {{ .Values.loadTest.scenario }}]
    env:
      - {name: URL, value: {{ $url | quote }}}
      - {name: SET, value: /images/set.json}
      - {name: OUT, value: /results}
      - {name: TERMINATION_LOG, value: /dev/termination-log}
      # The report in the log: the only way out of a pod that has ended.
      - {name: PRINT_REPORT, value: "yes"}
      - {name: HOME, value: /tmp}
      - {name: MIX, value: {{ .Values.loadTest.mix | quote }}}
      - {name: {{ ternary "START_RATE" "RATE" (eq .Values.loadTest.scenario "breakpoint") }}, value: {{ include "assay.text" .Values.loadTest.rate }}}
      - {name: SECONDS, value: {{ include "assay.text" .Values.loadTest.durationSeconds }}}
      - {name: SEED, value: {{ include "assay.text" .Values.loadTest.seed }}}
      - {name: P99_MS, value: {{ include "assay.text" .Values.loadTest.p99Ms }}}
      {{- range $name, $value := .Values.loadTest.settings }}
      - {name: {{ $name }}, value: {{ include "assay.text" $value }}}
      {{- end }}
      {{- with .Values.loadTest.remoteWriteUrl }}
      # The Job's name, by which the dashboard tells runs apart.
      - name: TESTID
        valueFrom:
          fieldRef:
            fieldPath: metadata.labels['job-name']
      - {name: K6_OUT, value: experimental-prometheus-rw}
      - {name: K6_PROMETHEUS_RW_SERVER_URL, value: {{ . | quote }}}
      # The percentiles of the report; by default only p99 would be sent.
      - {name: K6_PROMETHEUS_RW_TREND_STATS, value: "p(50),p(95),p(99),max"}
      {{- end }}
    resources:
      requests:
        {{- toYaml .Values.loadTest.resources.requests | nindent 8 }}
      limits:
        {{- range $name, $value := .Values.loadTest.resources.limits }}
        {{- if $value }}
        {{ $name }}: {{ $value | quote }}
        {{- end }}
        {{- end }}
    securityContext:
      {{- include "assay.containerSecurity" . | nindent 6 }}
    # One line of JSON with verdict, reasons and the main figures.
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: FallbackToLogsOnError
    volumeMounts:
      - {name: scripts, mountPath: /scripts, readOnly: true}
      - {name: images, mountPath: /images, readOnly: true}
      - {name: results, mountPath: /results}
      - {name: tmp, mountPath: /tmp}
{{- end -}}
