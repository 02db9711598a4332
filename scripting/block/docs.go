package block

import (
	"maps"

	"github.com/weir-run/weir/scripting"
)

// Docs returns the manual of the attributes and blocks of a kind that the
// script does not declare.
func Docs(kind scripting.ComponentKind) map[string]string {
	docs := map[string]string{}
	all := []map[string]string{commonDocs, allowDocs, listenDocs}
	if kind == scripting.Sink {
		all = append(all, sinkDocs)
	}
	for _, some := range all {
		maps.Copy(docs, some)
	}
	return docs
}

// commonDocs is the manual of the attributes and blocks of every scripted
// block.
var commonDocs = map[string]string{
	"forward_to":                        "Receivers of the data that the script emits or keeps.",
	"interval":                          "Interval between two calls of poll. The first call is at the start.",
	"script":                            "Settings of the host for this script.",
	"script.concurrency":                `How calls may run concurrently. "ordered" processes batches of different sources concurrently on several VMs. "parallel" also splits batches of 4,000 records and more, and the hook sees the parts. "single" runs one call at a time on one VM. "partition" splits batches by the labels in by; records with the same values always go to the same VM, which runs one call at a time. The order of each series is kept in all modes.`,
	"script.by":                         `Labels whose values select the VM for "partition"; __name__ is the metric name. The other modes do not use it.`,
	"script.on_error":                   `Action for data whose hook failed. "pass" forwards it unchanged, "drop" drops and counts it, "quarantine" stores it on disk for 'weir quarantine', "hold" does not accept it until the script works. If the hook fails on a whole batch, weir calls it again with parts of the batch to find the records that it cannot process. The action applies to these records only; with "hold", they go into quarantine. "hold" holds the whole batch only if the script fails on all records, or if one of its requests or programs fails. With the other actions, a hook that used external resources is not called again, so the action applies to the whole batch. The default is the value in the script, or "pass". Records that a source emits before an error are always dropped. For a sink, the default is "hold", which sends the batch, or the parts that failed, again until it succeeds; a sink has no "pass". Changes that a hook made to ctx.state and ctx.metrics before it failed are kept.`,
	"script.quarantine":                 `Limits of the quarantine of on_error = "quarantine" and "hold". If it is full, the oldest entries are removed and counted.`,
	"script.quarantine.max_size":        "Maximum size on disk.",
	"script.quarantine.max_age":         "Maximum age of entries.",
	"script.on_reload":                  `When a changed script takes over, both when weir starts and after a save. "swap": immediately. "test": when the tests in the file <name>_test next to the script and the examples in its header pass; until then, the last version that passed runs. "shadow": when the tests pass and the script has also processed recent input of the node without a difference that the block shadow forbids; only for a transform. The default is "test" if there is such a file.`,
	"script.shadow":                     `Settings of on_reload = "shadow": recent input that the node keeps, and differences between the running and the new version that refuse the new version.`,
	"script.shadow.input_size":          "Approximate size of the recent input that the node keeps in memory.",
	"script.shadow.max_time":            "Maximum duration of the comparison. When it is reached, weir decides by the input that was compared.",
	"script.shadow.max_time_per_record": "Maximum average time that the new version takes for a record. It applies from 100 records on. If the running version exceeds it too, the new version may take up to twice as long as the running version.",
	"script.shadow.max_drop_increase":   "Maximum share of the records, from 0 to 1, that the new version drops and the running version keeps, less those that only the running version drops.",
	"script.shadow.max_changed_records": "Maximum share of the records, from 0 to 1, that both versions keep but with different labels, values, lines, metadata, times or outputs.",
	"script.shadow.max_new_series":      "Maximum number of series and streams that the new version sends and the running version does not.",
	"script.canary":                     `Gives a changed version of a transform a share of the data before it takes over, after its tests have passed. If the guards hold until the time in for is over, the new version takes over; otherwise it is rolled back. 'weir promote' and 'weir rollback' end a canary at once. Not for sources and sinks.`,
	"script.canary.share":               "Share of the data for the new version, greater than 0 and less than 1.",
	"script.canary.by":                  `The unit of the share. "series": each series, or log stream, is processed by the same version during the whole canary. With concurrency = "partition", this applies to all series that have the same values of the labels in script.by.`,
	"script.canary.for":                 "How long the new version must satisfy the guards before it takes over.",
	"script.canary.max_errors":          "Maximum increase of the share of failed calls over that of the running version. 0.01 allows one more failed call in 100.",
	"script.canary.max_drop_increase":   "Maximum increase of the share of dropped records over that of the running version. It applies from 100 records on, and allows for chance if the new version has few series.",
	"script.canary.max_slowdown":        "Maximum time per record, as a multiple of that of the running version. It applies from 1,000 records on; each call of the new version may take another 200µs.",
	"script.limits":                     "Limits of one call.",
	"script.limits.time":                "Maximum run time of the hooks of one batch, plus 20µs for each record.",
	"script.limits.memory":              "Maximum size of the objects in a VM that the script can reach: tables, strings, functions. It is measured after the process has allocated this much, so a call may exceed it for a moment.",
	"script.limits.wait":                "Maximum time of one wait of a hook, such as ctx.sleep or a request. It does not count towards the time limit.",
	"script.limits.state":               "Maximum size of all entries of ctx.state, in memory and on disk; each entry counts with its key, its value and 128 bytes. The default is 256 MiB, as long as the state of all nodes uses less than 1 GiB; a node with its own limit does not depend on other nodes. If the limit is reached, a new entry is refused or evicts old ones, and weir_script_state_entries_refused_total or …_evicted_total counts it.",
	"script.limits.emit":                "Maximum number of records that one call may emit. The default is ten for each record of the batch, plus 10,000; for a source it is 100,000.",
	"script.limits.output":              "Maximum size of the lines, labels and metadata that one call may set and emit, including values that it overwrites later, plus 4 KiB and the size of its lines for each record of the batch. A line counts once for each record that it is set on.",
}

// allowDocs is the manual of the blocks allow and http.
var allowDocs = map[string]string{
	"script.allow": "External resources that the script may use. Each must also be declared in needs of the script. The script cannot see resources that are not granted.",
	"script.allow.http": "URLs that ctx.http may request, including the targets of redirects: https://geo.internal/*, https://*.example.com:8443/api/*. " +
		"A star matches any text in a path, one or more labels at the beginning of a host name, or any port. " +
		"Loopback and private addresses need a pattern that names the host; link-local addresses and cloud metadata addresses need a pattern that names the address.",
	"script.allow.env": "Environment variables in ctx.env, such as REGION or WEIR_*.",
	"script.allow.read": "Files that ctx.read may read: /etc/weir/*, /etc/weir/**/*.json. A star matches any text in a name, ** matches any directories. " +
		"Symbolic links must not lead out of the directory in front of the first star. Files in weir's storage directory are never read.",
	"script.allow.exec": "Programs that ctx.exec may run, by absolute path, such as /usr/bin/df. To limit the arguments, add them: " +
		"/usr/bin/systemctl is-active *. A star matches any text in an argument, and ... at the end matches any further arguments. Put arguments with spaces in single quotes. " +
		"A star at the beginning of an argument, and ..., do not match options, which begin with -: write -* for one option and -... for any further arguments including options. After an argument --, they match options too.",
	"script.allow.listen":                         "Not allowed: a transform does not receive requests.",
	"script.http":                                 "Connection settings of ctx.http.",
	"script.http.tls_config":                      "TLS settings of the connections.",
	"script.http.tls_config.ca_pem":               "CA certificates to verify servers with, as PEM text.",
	"script.http.tls_config.ca_file":              "File with the CA certificates.",
	"script.http.tls_config.cert_pem":             "Client certificate, as PEM text.",
	"script.http.tls_config.cert_file":            "File with the client certificate, a regular file of at most 1 MiB.",
	"script.http.tls_config.key_pem":              "Key of the client certificate, as PEM text.",
	"script.http.tls_config.key_file":             "File with the key of the client certificate, a regular file of at most 1 MiB.",
	"script.http.tls_config.server_name":          "Server name to verify instead of the host's.",
	"script.http.tls_config.insecure_skip_verify": "Whether certificates are left unverified.",
	"script.http.tls_config.min_version":          "Lowest TLS version to accept: TLS10, TLS11, TLS12 or TLS13.",
	"script.http.proxy_url":                       "URL of the proxy to send requests through. The proxy then resolves host names.",
	"script.http.no_proxy":                        "Comma-separated addresses, CIDR blocks and domains to reach without the proxy.",
	"script.http.proxy_from_environment":          "Whether the proxy is taken from the environment (HTTP_PROXY, HTTPS_PROXY, NO_PROXY).",
	"script.http.proxy_connect_header":            "Headers to send to the proxy with CONNECT requests.",
}

// sinkDocs is the manual of the additional blocks of a sink.
var sinkDocs = map[string]string{
	"batch":             "Size of the batches that the script sends. Values that neither the block nor the definition sets have these defaults: 1000 records, 1MiB, 1s, 4 in flight.",
	"batch.max_records": "Maximum number of records in a batch.",
	"batch.max_bytes":   "Approximate maximum size of the labels, values and lines in a batch; a larger record is sent alone.",
	"batch.max_wait":    "Maximum time that records wait in the journal for a batch to fill. Their sources do not wait.",
	"batch.in_flight":   "Number of batches of a signal that are sent concurrently; with script.concurrency = \"single\" it is one. Batches of the same source are sent one at a time, so its records stay in order; with \"parallel\", this applies to batches with the same series, and with \"partition\", to batches with the same values of the labels in by.",
	"journal":           "Limits of the journal, a queue on disk that contains all records that were accepted and not yet delivered. If a file is damaged, its records are lost; the damage is logged once and counted.",
	"journal.max_size":  "Maximum size on disk; on_full sets the action when it is reached.",
	"journal.max_age":   "Maximum age of unsent records; older records are dropped and counted. The journal of a removed node is kept for the same time: its records are sent if the node is added again, or another node with the same script and the same arguments.",
	"journal.fsync":     "When written data is flushed to the disk: \"none\" (the kernel decides), \"interval\" (every second) or \"always\" (before a batch is accepted).",
	"journal.on_full":   "Action when the journal is full: \"block\" (the sources wait) or \"drop_oldest\".",
}
