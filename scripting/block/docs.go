package block

import (
	"maps"

	"github.com/weir-run/weir/scripting"
)

// Docs returns the manual of what the blocks of a kind have besides the
// script's arguments.
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

// commonDocs are the manual of what every scripted block has.
var commonDocs = map[string]string{
	"forward_to":                 "Receivers of what the script leaves.",
	"interval":                   "How often poll is called. The first time is at once.",
	"script":                     "The host's side of the block.",
	"script.concurrency":         `How calls may overlap: "ordered" runs batches of several sources side by side on several VMs; "parallel" also splits batches of 4,000 records and more, and the hook sees parts; "single" runs one call at a time on one VM; "partition" splits batches by the labels in by, and the same values meet the same VM in every batch, one call at a time. The order of a series is kept in all of them.`,
	"script.by":                  `Labels by whose values "partition" chooses the VM; __name__ is the metric name. Others: none.`,
	"script.on_error":            `What becomes of data whose hook failed: "pass" sends it on unchanged, "drop" drops and counts it, "quarantine" stores it on disk for 'weir quarantine', "hold" does not accept it until the script works. A batch that the hook fails on as a whole goes through it in parts, to find the records that it cannot process: they alone are what on_error says, in quarantine with "hold", which holds when the script fails on all records, or when a request or program of its own fails. With other than "hold", a hook that uses the outside is not called twice, so that its error costs the batch. By default what the script says, or "pass"; what a source makes before an error is always dropped; a sink has "hold" by default, which is to send the batch, or the parts of it that fail, again until it works, and no "pass". What a hook has done in ctx.state and ctx.metrics before it failed stays.`,
	"script.quarantine":          `What on_error = "quarantine" and "hold" may store. The oldest falls off and is counted.`,
	"script.quarantine.max_size": "How much is kept on disk.",
	"script.quarantine.max_age":  "How long it is kept.",
	"script.on_reload":           `How a changed script takes over, at the start of weir and after a save. "swap": at once. "test": when the tests in the file <name>_test next to the script and the examples in its header pass; until then, the last version that passed runs. The default is "test" if there is such a file.`,
	"script.limits":              "What one call may use.",
	"script.limits.time":         "How long the hooks of one batch may run, plus 20µs for each record.",
	"script.limits.memory":       "How much a VM may hold of what the script can reach: tables, strings, functions. It is added up when the process has allocated as much, so a call may exceed it for a moment.",
	"script.limits.wait":         "How long a hook may wait for the outside each time: ctx.sleep, a request. The time limit stands still meanwhile.",
	"script.limits.state":        "How many bytes the entries of all of ctx.state may have together, in memory and on disk, each with its key, its value and 128 bytes. By default 256 MiB, as long as the state of all nodes has less than 1 GiB; a node with a limit of its own does not depend on others. An entry more is refused, or evicts those before it, and weir_script_state_entries_refused_total or …_evicted_total counts it.",
	"script.limits.emit":         "How many records one call may emit. By default ten for each record of the batch, plus 10,000; of a source 100,000.",
	"script.limits.output":       "How many bytes of lines, labels and metadata one call may set and emit, whether or not they are set again later, plus 4 KiB for each record of the batch and what its lines have. One line counts for each record that it is set to.",
}

// allowDocs are the manual of the blocks allow and http.
var allowDocs = map[string]string{
	"script.allow": "What the script may reach of the world outside, of what it declares in its needs. What is not granted does not exist for it.",
	"script.allow.http": "URLs that ctx.http may ask, where redirects lead included: https://geo.internal/*, https://*.example.com:8443/api/*. " +
		"A star stands for any text in the path, for one or more names at the beginning of a host, for any port. " +
		"Loopback and private addresses need a pattern with the host's name, link-local addresses and clouds' metadata one with the address.",
	"script.allow.env": "Environment variables in ctx.env: REGION, WEIR_*.",
	"script.allow.read": "Files that ctx.read may read: /etc/weir/*, /etc/weir/**/*.json. A star stands for any text in a name, ** for any folders. " +
		"Symbolic links must not lead out of the folder before the first star. Files in weir's storage directory are never read.",
	"script.allow.exec": "Programs that ctx.exec may run, by their absolute path: /usr/bin/df; with their arguments, if not all are meant: " +
		"/usr/bin/systemctl is-active *. A star stands for any text in an argument, ... at the end for any further ones; what has spaces stands in single quotes. " +
		"A star at the beginning of an argument, or ..., does not stand for an option, which begins with -: write -* for one option, -... for any further arguments with options. Behind an argument -- it does.",
	"script.allow.listen":                         "Refused: nothing calls a transform from outside.",
	"script.http":                                 "How ctx.http connects.",
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
	"script.http.proxy_url":                       "URL of the proxy to send requests through. What a host resolves to is the proxy's matter then.",
	"script.http.no_proxy":                        "Comma-separated addresses, CIDR blocks and domains to reach without the proxy.",
	"script.http.proxy_from_environment":          "Whether the proxy is taken from the environment (HTTP_PROXY, HTTPS_PROXY, NO_PROXY).",
	"script.http.proxy_connect_header":            "Headers to send to the proxy with CONNECT requests.",
}

// sinkDocs are the manual of what the block of a sink has beside.
var sinkDocs = map[string]string{
	"batch":             "How large the batches are that the script sends. What its definition does not say either has these defaults: 1000 records, 1MiB, 1s, 4 in flight.",
	"batch.max_records": "How many records a batch has at most.",
	"batch.max_bytes":   "About how many bytes of labels, values and lines a batch has at most; a record that is larger goes alone.",
	"batch.max_wait":    "How long records wait in the journal for more of them. Their sources do not wait for that.",
	"batch.in_flight":   "How many batches of a signal are sent at once; with script.concurrency = \"single\" it is one. Those of one source never are, so its records stay in order; with \"parallel\" those of one series, with \"partition\" those with the same values of the labels in by.",
	"journal":           "Bounds of the queue on disk, where everything is that was accepted and is not delivered. Damage to a file costs the records that were there, is logged once and counted.",
	"journal.max_size":  "Bytes on disk above which on_full acts.",
	"journal.max_age":   "Age above which records that could not be sent are dropped and counted. The journal of a node that went is kept as long: its records are sent when the node is there again, or another one of the same script with the same arguments.",
	"journal.fsync":     "When what was written is forced to the disk: \"none\" (the kernel decides), \"interval\" (every second) or \"always\" (before a batch is accepted).",
	"journal.on_full":   "What a full journal does: \"block\" (the sources wait) or \"drop_oldest\".",
}
