{{- define "pagefile.name" -}}
{{- if contains .Chart.Name .Release.Name -}}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{- end -}}
{{- end }}

{{- define "pagefile.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "pagefile.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "pagefile.selector" . }}
{{- end }}

{{- define "pagefile.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "pagefile.name" .) "default" .Values.serviceAccount.create) -}}
{{- end }}

{{/* Whether there is a worker of its own: SQLite is of one pod, which does its own background work. */}}
{{- define "pagefile.hasWorker" -}}
{{- if and .Values.worker.enabled .Values.database.existingSecret }}yes{{ end -}}
{{- end }}

{{/* The names that clients call the service by; others are refused, unless the settings say otherwise. */}}
{{- define "pagefile.hosts" -}}
{{- $name := include "pagefile.name" . -}}
{{- $space := printf "%s.%s" $name .Release.Namespace -}}
{{- $names := list $name $space (printf "%s.svc" $space) (printf "%s.svc.cluster.local" $space) -}}
{{- if .Values.ingress.enabled }}{{ $names = append $names .Values.ingress.host }}{{ end -}}
{{- join ", " $names -}}
{{- end }}

{{/* The environment of every container: the settings, the database and what else is set. */}}
{{- define "pagefile.env" -}}
- name: PAGEFILE_CONFIG
  value: /etc/pagefile/pagefile.yaml
- name: PAGEFILE_URL
  {{- if .Values.database.existingSecret }}
  valueFrom:
    secretKeyRef:
      name: {{ .Values.database.existingSecret }}
      key: {{ .Values.database.secretKey }}
  {{- else }}
  value: sqlite:////data/pagefile.db
  {{- end }}
{{- if not (dig "service" "hosts" "" .Values.settings) }}
- name: PAGEFILE_SERVICE__HOSTS
  value: {{ include "pagefile.hosts" . }}
{{- end }}
- name: PAGEFILE_SERVICE__STOP_DELAY_S
  value: {{ .Values.stopDelaySeconds | quote }}
- name: PAGEFILE_SERVICE__GRACE_S
  value: {{ .Values.graceSeconds | quote }}
{{- if include "pagefile.hasWorker" . }}
- name: PAGEFILE_WORKER
  value: apart
{{- end }}
{{- with .Values.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What every container has in common: the image, no rights, where it reads and writes. */}}
{{- define "pagefile.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
env:
  {{- include "pagefile.env" . | nindent 2 }}
volumeMounts:
  - name: settings
    mountPath: /etc/pagefile
    readOnly: true
  - name: data
    mountPath: /data
  - name: tmp
    mountPath: /tmp
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* The pod of the service and of the worker: what to run, and what differs between them, come as a dict. */}}
{{- define "pagefile.pod" -}}
{{- $top := .top -}}
metadata:
  labels:
    {{- include "pagefile.selector" $top | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
  annotations:
    # New settings start new pods.
    checksum/settings: {{ toJson $top.Values.settings | sha256sum }}
    {{- with $top.Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "pagefile.serviceAccount" $top }}
  # Nothing in it calls the Kubernetes API.
  automountServiceAccountToken: false
  {{- with $top.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  terminationGracePeriodSeconds: {{ $top.Values.terminationGracePeriodSeconds }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    seccompProfile:
      type: RuntimeDefault
  {{- with .first }}
  initContainers:
    - name: {{ .name }}
      args: {{ .args | toJson }}
      {{- include "pagefile.container" $top | nindent 6 }}
      resources:
        {{- toYaml $.resources | nindent 8 }}
  {{- end }}
  containers:
    - name: pagefile
      args: {{ .args | toJson }}
      {{- include "pagefile.container" $top | nindent 6 }}
      {{- with .ports }}
      ports:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .probes }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
      resources:
        {{- toYaml .resources | nindent 8 }}
  volumes:
    - name: settings
      configMap:
        name: {{ include "pagefile.name" $top }}
    - name: tmp
      emptyDir: {}
    - name: data
      {{- if $top.Values.database.existingSecret }}
      emptyDir: {}
      {{- else }}
      persistentVolumeClaim:
        claimName: {{ $top.Values.database.persistence.existingClaim | default (include "pagefile.name" $top) }}
      {{- end }}
    {{- with $top.Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $top.Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $top.Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $top.Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
