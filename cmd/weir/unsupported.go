package main

import (
	"fmt"

	"github.com/weir-run/weir/engine/config"
)

// unsupported lists the blocks of Grafana Alloy's reference that weir lacks, each
// with a replacement: a component, a script that ships with weir, or a program to
// run in addition. unsupported_test.go compares it with the list of all blocks in
// testdata/alloy_blocks.txt, and checks that every component and script in it
// exists.
func unsupported() config.Unsupported {
	u := config.Unsupported{}
	for name, instead := range replacements {
		u[name] = instead
	}
	for name, e := range exporters {
		u["prometheus.exporter."+name] = e.advice()
	}
	return u
}

// exporter is a program that exposes the metrics of a prometheus.exporter.*.
type exporter struct {
	program string
	source  string // repository, without https://
	port    int    // default port; 0 if there is no reliable default
	more    string // target and arguments for scraping, if more than the address is needed
}

func (e exporter) advice() string {
	s := fmt.Sprintf("run %s (https://%s) alongside weir and scrape it with prometheus.scrape", e.program, e.source)
	if e.port > 0 {
		s += fmt.Sprintf(": targets = [{ __address__ = \"127.0.0.1:%d\"%s", e.port, e.more)
		if e.more == "" {
			s += " }]"
		}
	}
	return s
}

// exporters are listed by the last part of the block name.
var exporters = map[string]exporter{
	"apache":        {"apache_exporter", "github.com/Lusitaniae/apache_exporter", 9117, ""},
	"azure":         {"azure-metrics-exporter", "github.com/webdevops/azure-metrics-exporter", 8080, ""},
	"blackbox":      {"blackbox_exporter", "github.com/prometheus/blackbox_exporter", 9115, `, __param_target = "https://example.com", __param_module = "http_2xx" }] and metrics_path = "/probe"`},
	"cadvisor":      {"cAdvisor", "github.com/google/cadvisor", 8080, ""},
	"catchpoint":    {"catchpoint-prometheus-exporter", "github.com/grafana/catchpoint-prometheus-exporter", 0, ""},
	"cloudwatch":    {"yet-another-cloudwatch-exporter", "github.com/prometheus-community/yet-another-cloudwatch-exporter", 5000, ""},
	"consul":        {"consul_exporter", "github.com/prometheus/consul_exporter", 9107, ""},
	"databricks":    {"databricks-prometheus-exporter", "github.com/grafana/databricks-prometheus-exporter", 0, ""},
	"dnsmasq":       {"dnsmasq_exporter", "github.com/google/dnsmasq_exporter", 9153, ""},
	"elasticsearch": {"elasticsearch_exporter", "github.com/prometheus-community/elasticsearch_exporter", 9114, ""},
	"gcp":           {"stackdriver_exporter", "github.com/prometheus-community/stackdriver_exporter", 9255, ""},
	"github":        {"github-exporter", "github.com/githubexporter/github-exporter", 9171, ""},
	"kafka":         {"kafka_exporter", "github.com/grafana/kafka_exporter", 9308, ""},
	"memcached":     {"memcached_exporter", "github.com/prometheus/memcached_exporter", 9150, ""},
	"mongodb":       {"mongodb_exporter", "github.com/percona/mongodb_exporter", 9216, ""},
	"mssql":         {"sql_exporter", "github.com/burningalchemist/sql_exporter", 9399, ""},
	"mysql":         {"mysqld_exporter", "github.com/prometheus/mysqld_exporter", 9104, ""},
	"oracledb":      {"oracle-db-appdev-monitoring", "github.com/oracle/oracle-db-appdev-monitoring", 9161, ""},
	"postgres":      {"postgres_exporter", "github.com/prometheus-community/postgres_exporter", 9187, ""},
	"process":       {"process-exporter", "github.com/ncabatoff/process-exporter", 9256, ""},
	"redis":         {"redis_exporter", "github.com/oliver006/redis_exporter", 9121, ""},
	"snmp":          {"snmp_exporter", "github.com/prometheus/snmp_exporter", 9116, `, __param_target = "192.0.2.1", __param_module = "if_mib" }] and metrics_path = "/snmp"`},
	"snowflake":     {"snowflake-prometheus-exporter", "github.com/grafana/snowflake-prometheus-exporter", 0, ""},
	"squid":         {"squid-exporter", "github.com/boynux/squid-exporter", 9301, ""},
	"statsd":        {"statsd_exporter", "github.com/prometheus/statsd_exporter", 9102, ` }], or send StatsD over HTTP to source.statsd_http, a script that ships with weir`},
	"windows":       {"windows_exporter", "github.com/prometheus-community/windows_exporter", 9182, ""},
}

// Advice for several blocks.
const (
	targetFile = " into a file that discovery.file reads, or serve it over HTTP to discovery.http"
	// cloudList is for discovery components whose API needs signed requests.
	cloudList = "let a scheduled job write the list of targets, for example from `%s`," + targetFile

	jsonAPI = "read %s with discovery.http_json, a script that ships with weir"

	operator = "weir does not read custom resources of the Prometheus operator: find the %s with discovery.kubernetes (role = %q), select them with discovery.relabel and scrape them with prometheus.scrape"

	viaVector = "run Vector (https://github.com/vectordotdev/vector) alongside weir with its source %s and its sink loki, and point the sink to loki.source.api"

	kubernetesLogs = "follow the files of the node: discovery.kubernetes (role = \"pod\"), discovery.relabel to set __path__ to /var/log/pods/*<pod uid>/<container>/*.log, loki.source.file with file_match enabled, and loki.process with stage.cri"

	profiles = "weir carries metrics and logs, no profiles: keep Grafana Alloy or another profiler alongside weir for this part"
	traces   = "weir carries metrics and logs, no traces: keep the OpenTelemetry Collector or Grafana Alloy alongside weir for this part"

	otelReceive = "weir has no OpenTelemetry components: run the OpenTelemetry Collector or Grafana Alloy alongside weir for this part; it can send metrics to prometheus.receive_http by remote write, and Alloy can send logs to loki.source.api"
	otelProcess = "weir has no OpenTelemetry components: "
	otelExport  = "weir has no OpenTelemetry components: Prometheus, Mimir and Loki are written to with prometheus.remote_write and loki.write; for other systems run the OpenTelemetry Collector alongside weir, whose receivers prometheusremotewrite (remote write 2.0) and loki take what these two send"
	otelAuth    = "weir has no OpenTelemetry components: "

	alloyLogs = "run Grafana Alloy alongside weir for this part, and let its loki.write send to loki.source.api"
)

var replacements = config.Unsupported{
	// Config blocks.
	"remotecfg": "let a scheduled job fetch the config into the file or directory that weir runs: weir applies a changed config by itself; a part of it can come from remote.http and import.string",

	// Discovery.
	"discovery.aws":          fmt.Sprintf(cloudList, "aws ec2 describe-instances"),
	"discovery.azure":        fmt.Sprintf(cloudList, "az vm list --show-details"),
	"discovery.consulagent":  "use discovery.consul, which reads the catalog, and keep the services of the local node with a rule on __meta_consul_node in discovery.relabel",
	"discovery.digitalocean": fmt.Sprintf(jsonAPI, "https://api.digitalocean.com/v2/droplets"),
	"discovery.dockerswarm":  "use discovery.dns with names = [\"tasks.<service>\"] and type = \"A\" in the network of the service, or discovery.docker on each node",
	"discovery.ec2":          fmt.Sprintf(cloudList, "aws ec2 describe-instances"),
	"discovery.eureka":       "let a scheduled job write the instances of Eureka's API (/eureka/v2/apps)" + targetFile,
	"discovery.gce":          fmt.Sprintf(cloudList, "gcloud compute instances list"),
	"discovery.hetzner":      fmt.Sprintf(jsonAPI, "https://api.hetzner.cloud/v1/servers"),
	"discovery.ionos":        fmt.Sprintf(jsonAPI, "the servers of the data center in the IONOS Cloud API"),
	"discovery.kubelet":      "use discovery.kubernetes with role = \"pod\" and a block selectors { role = \"pod\", field = \"spec.nodeName=\" + sys.env(\"NODE_NAME\") }",
	"discovery.kuma":         "let a scheduled job write the list of data plane proxies, for example from `kumactl get dataplanes -o json`," + targetFile,
	"discovery.lightsail":    fmt.Sprintf(cloudList, "aws lightsail get-instances"),
	"discovery.linode":       fmt.Sprintf(jsonAPI, "https://api.linode.com/v4/linode/instances"),
	"discovery.marathon":     fmt.Sprintf(jsonAPI, "Marathon's /v2/tasks"),
	"discovery.nerve":        "let a scheduled job write the members that ZooKeeper lists" + targetFile,
	"discovery.nomad":        fmt.Sprintf(jsonAPI, "Nomad's /v1/service/<name>"),
	"discovery.openstack":    fmt.Sprintf(cloudList, "openstack server list --format json"),
	"discovery.ovhcloud":     "let a scheduled job write the servers of OVHcloud's API" + targetFile,
	"discovery.process":      "weir does not discover processes: list their addresses in targets, or in a file that discovery.file reads; prometheus.exporter.unix counts the processes of the host",
	"discovery.puppetdb":     fmt.Sprintf(jsonAPI, "PuppetDB's /pdb/query/v4/resources"),
	"discovery.scaleway":     fmt.Sprintf(cloudList, "scw instance server list --output=json"),
	"discovery.serverset":    "let a scheduled job write the members that ZooKeeper lists" + targetFile,
	"discovery.triton":       "let a scheduled job write the machines that Triton's container monitor (/v1/discover) lists" + targetFile,
	"discovery.uyuni":        "let a scheduled job write the systems that Uyuni's API lists" + targetFile,

	// Logs.
	"loki.rules.kubernetes":         "weir does not manage rules: load them with `lokitool rules sync`; loki.write only sends lines",
	"loki.source.awsfirehose":       fmt.Sprintf(viaVector, "aws_kinesis_firehose"),
	"loki.source.azure_event_hubs":  fmt.Sprintf(viaVector, "kafka, which reads Event Hubs by its Kafka endpoint"),
	"loki.source.cloudflare":        "let Cloudflare's Logpush post to loki.source.api, which takes plain lines at /loki/api/v1/raw",
	"loki.source.docker":            "follow the files of the json-file log driver: loki.source.file with __path__ = \"/var/lib/docker/containers/*/*-json.log\" and file_match enabled, then loki.process with stage.docker; or use Docker's journald driver and loki.source.journal",
	"loki.source.gcplog":            fmt.Sprintf(viaVector, "gcp_pubsub"),
	"loki.source.gelf":              "let the senders use syslog, for example Docker's log driver syslog, and loki.source.syslog; for GELF itself " + alloyLogs,
	"loki.source.heroku":            fmt.Sprintf(viaVector, "heroku_logs"),
	"loki.source.kafka":             fmt.Sprintf(viaVector, "kafka"),
	"loki.source.kubernetes":        kubernetesLogs,
	"loki.source.kubernetes_events": "run kubernetes-event-exporter (https://github.com/resmoio/kubernetes-event-exporter) with its receiver loki, and point it to loki.source.api",
	"loki.source.podlogs":           kubernetesLogs,
	"loki.source.windowsevent":      "run Fluent Bit (https://github.com/fluent/fluent-bit) alongside weir with its input winevtlog and its output loki, and point the output to loki.source.api",
	"faro.receiver":                 alloyLogs,

	// Metrics.
	"prometheus.operator.podmonitors":     fmt.Sprintf(operator, "pods", "pod"),
	"prometheus.operator.probes":          "weir does not read custom resources of the Prometheus operator: run blackbox_exporter (https://github.com/prometheus/blackbox_exporter) and scrape it with prometheus.scrape, one target per probe with __param_target and metrics_path = \"/probe\"",
	"prometheus.operator.scrapeconfigs":   "weir does not read custom resources of the Prometheus operator: write each of them as a block prometheus.scrape with the discovery it uses, such as discovery.kubernetes",
	"prometheus.operator.servicemonitors": fmt.Sprintf(operator, "endpoints of the services", "endpoints"),
	"mimir.alerts.kubernetes":             "weir does not manage alerting: load the configuration with `mimirtool alertmanager load`; prometheus.remote_write only sends samples",
	"mimir.rules.kubernetes":              "weir does not manage rules: load them with `mimirtool rules sync`; prometheus.remote_write only sends samples",
	"beyla.ebpf":                          "run Grafana Beyla (https://github.com/grafana/beyla) alongside weir and scrape it with prometheus.scrape",

	"database_observability.mysql":      "for metrics run mysqld_exporter (https://github.com/prometheus/mysqld_exporter) alongside weir and scrape it with prometheus.scrape; for logs of queries " + alloyLogs,
	"database_observability.postgres":   "for metrics run postgres_exporter (https://github.com/prometheus-community/postgres_exporter) alongside weir and scrape it with prometheus.scrape; for logs of queries " + alloyLogs,
	"database_observability.sql_server": "for metrics run sql_exporter (https://github.com/burningalchemist/sql_exporter) alongside weir and scrape it with prometheus.scrape; for logs of queries " + alloyLogs,

	// Blocks for external systems.
	"remote.kubernetes.configmap": "mount the config map as a volume and read its files with local.file",
	"remote.kubernetes.secret":    "mount the secret as a volume and read its files with local.file and is_secret = true",
	"remote.s3":                   "poll a presigned URL with remote.http, or let a scheduled job copy the object to a file that local.file reads",
	"remote.vault":                "let Vault Agent write the secret to a file that local.file reads with is_secret = true, or poll Vault's API with remote.http, is_secret = true and the header X-Vault-Token",

	// Profiles.
	"pyroscope.*":            profiles,
	"pyroscope.ebpf":         profiles,
	"pyroscope.enrich":       profiles,
	"pyroscope.java":         profiles,
	"pyroscope.receive_http": profiles,
	"pyroscope.relabel":      profiles,
	"pyroscope.scrape":       profiles,
	"pyroscope.write":        profiles,

	// OpenTelemetry receivers.
	"otelcol.*":                                otelReceive,
	"otelcol.receiver.awscloudwatch":           fmt.Sprintf(viaVector, "aws_kinesis_firehose, fed by a subscription of the log group"),
	"otelcol.receiver.awsecscontainermetrics":  "run ecs_exporter (https://github.com/prometheus-community/ecs_exporter) as a sidecar and scrape it with prometheus.scrape: targets = [{ __address__ = \"127.0.0.1:9779\" }]",
	"otelcol.receiver.awss3":                   otelReceive,
	"otelcol.receiver.cloudflare":              "let Cloudflare's Logpush post to loki.source.api, which takes plain lines at /loki/api/v1/raw",
	"otelcol.receiver.datadog":                 otelReceive,
	"otelcol.receiver.faro":                    alloyLogs,
	"otelcol.receiver.file_stats":              "print size and age of the files as metrics with a program that source.script_exporter runs, a script that ships with weir",
	"otelcol.receiver.filelog":                 "use loki.source.file, and loki.process for the operators",
	"otelcol.receiver.fluentforward":           "let Fluent Bit or Fluentd send with their output loki to loki.source.api",
	"otelcol.receiver.googlecloudpubsub":       fmt.Sprintf(viaVector, "gcp_pubsub"),
	"otelcol.receiver.influxdb":                "let Telegraf send with its output http and data_format = \"prometheusremotewrite\" to prometheus.receive_http",
	"otelcol.receiver.jaeger":                  traces,
	"otelcol.receiver.kafka":                   otelReceive,
	"otelcol.receiver.loki":                    "it is not needed in weir: loki.* components forward to each other, and loki.source.api takes lines from outside",
	"otelcol.receiver.nginx":                   "run nginx-prometheus-exporter (https://github.com/nginx/nginx-prometheus-exporter) alongside weir and scrape it with prometheus.scrape: targets = [{ __address__ = \"127.0.0.1:9113\" }]",
	"otelcol.receiver.opencensus":              otelReceive,
	"otelcol.receiver.otlp":                    otelReceive,
	"otelcol.receiver.prometheus":              "it is not needed in weir: prometheus.scrape forwards to prometheus.* components, and prometheus.receive_http takes samples from outside",
	"otelcol.receiver.solace":                  traces,
	"otelcol.receiver.splunkhec":               fmt.Sprintf(viaVector, "splunk_hec"),
	"otelcol.receiver.syslog":                  "use loki.source.syslog",
	"otelcol.receiver.tcplog":                  "use loki.source.syslog with syslog_format = \"raw\" in the listener",
	"otelcol.receiver.vcenter":                 "run vmware_exporter (https://github.com/pryorda/vmware_exporter) alongside weir and scrape it with prometheus.scrape: targets = [{ __address__ = \"127.0.0.1:9272\" }]",
	"otelcol.receiver.zipkin":                  traces,
	"otelcol.extension.jaeger_remote_sampling": traces,

	// OpenTelemetry connectors and processors.
	"otelcol.connector.count":                 otelProcess + "count log lines with logs.to_metrics and add series up with metrics.aggregate, scripts that ship with weir",
	"otelcol.connector.host_info":             traces,
	"otelcol.connector.servicegraph":          traces,
	"otelcol.connector.signaltometrics":       otelProcess + "make metrics of log lines with logs.to_metrics, a script that ships with weir, or with stage.metrics of loki.process",
	"otelcol.connector.spanlogs":              traces,
	"otelcol.connector.spanmetrics":           traces,
	"otelcol.processor.attributes":            otelProcess + "change labels with prometheus.relabel and loki.relabel, or with expr.set",
	"otelcol.processor.batch":                 "it is not needed in weir: prometheus.remote_write and loki.write send in batches",
	"otelcol.processor.cumulativetodelta":     otelProcess + "metrics.counter_to_rate, a script that ships with weir, turns counters into rates",
	"otelcol.processor.deltatocumulative":     otelReceive,
	"otelcol.processor.discovery":             otelProcess + "add labels of discovered targets with prometheus.enrich and loki.enrich",
	"otelcol.processor.filter":                otelProcess + "drop samples and log lines with expr.filter",
	"otelcol.processor.groupbyattrs":          "it is not needed in weir, where labels belong to each series and stream; change them with prometheus.relabel and loki.relabel",
	"otelcol.processor.interval":              otelProcess + "metrics.aggregate, a script that ships with weir, adds up and averages series over an interval",
	"otelcol.processor.k8sattributes":         otelProcess + "add labels of pods with prometheus.enrich or loki.enrich and the targets of discovery.kubernetes",
	"otelcol.processor.memory_limiter":        "it is not needed in weir: receivers make sources wait, and prometheus.remote_write and loki.write keep what waits in a journal on disk",
	"otelcol.processor.metric_start_time":     otelProcess + "prometheus.scrape reads start times with start_timestamp_zero_ingestion = true",
	"otelcol.processor.probabilistic_sampler": otelProcess + "keep a part of the log lines with stage.sampling of loki.process or with logs.sample_by_level, a script that ships with weir",
	"otelcol.processor.redaction":             otelProcess + "hide secrets with loki.secretfilter and personal data with logs.redact, a script that ships with weir",
	"otelcol.processor.resourcedetection":     otelProcess + "set labels of the host with external_labels of prometheus.remote_write and loki.write, for example { host = constants.hostname }",
	"otelcol.processor.span":                  traces,
	"otelcol.processor.tail_sampling":         traces,
	"otelcol.processor.transform":             otelProcess + "change samples and log lines with expr.set, or with a script: see `weir help scripts`",

	// OpenTelemetry exporters and extensions.
	"otelcol.exporter.awss3":             otelExport,
	"otelcol.exporter.datadog":           otelExport,
	"otelcol.exporter.debug":             "print samples with prometheus.echo and log lines with loki.echo",
	"otelcol.exporter.faro":              traces,
	"otelcol.exporter.file":              "print samples with prometheus.echo and log lines with loki.echo, and redirect the output of weir",
	"otelcol.exporter.googlecloud":       otelExport,
	"otelcol.exporter.googlecloudpubsub": otelExport,
	"otelcol.exporter.kafka":             otelExport,
	"otelcol.exporter.loadbalancing":     otelExport,
	"otelcol.exporter.loki":              "use loki.write",
	"otelcol.exporter.otlp":              otelExport,
	"otelcol.exporter.otlphttp":          otelExport,
	"otelcol.exporter.prometheus":        "use prometheus.remote_write",
	"otelcol.exporter.splunkhec":         otelExport,
	"otelcol.exporter.syslog":            otelExport,
	"otelcol.auth.basic":                 otelAuth + "set basic_auth in the endpoint of prometheus.remote_write and loki.write",
	"otelcol.auth.bearer":                otelAuth + "set bearer_token in the endpoint of prometheus.remote_write and loki.write",
	"otelcol.auth.google":                otelAuth + "set google_iam in the endpoint of prometheus.remote_write",
	"otelcol.auth.headers":               otelAuth + "set headers in the endpoint of prometheus.remote_write and loki.write",
	"otelcol.auth.oauth2":                otelAuth + "set oauth2 in the endpoint of prometheus.remote_write and loki.write",
	"otelcol.auth.sigv4":                 otelAuth + "set sigv4 in the endpoint of prometheus.remote_write",
	"otelcol.storage.file":               "it is not needed in weir: prometheus.remote_write and loki.write keep what waits in a journal on disk",
}
