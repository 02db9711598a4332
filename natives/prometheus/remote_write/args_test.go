package remotewrite_test

import (
	"strings"
	"testing"
	"time"

	"github.com/grafana/alloy/syntax"

	"github.com/weir-run/weir/engine/outbox"
	remotewrite "github.com/weir-run/weir/natives/prometheus/remote_write"
)

func TestDefaults(t *testing.T) {
	a := decode(t, `endpoint { url = "http://x/" }`)
	e := a.Endpoints[0]
	diff(t, remotewrite.Queue{
		Capacity: 10000, MaxShards: 8, MinShards: 1, MaxSamplesPerSend: 2000,
		MinBackoff: 30 * time.Millisecond, MaxBackoff: 5 * time.Second, RetryOnHTTP429: true,
	}, e.Queue)
	diff(t, remotewrite.Metadata{Send: true, SendInterval: time.Minute, MaxSamplesPerSend: 2000}, e.Metadata)
	diff(t, outbox.Arguments{MaxSize: 10 << 30, MaxAge: 8 * time.Hour, Fsync: "none", OnFull: "block"}, a.Journal)
	if e.Client.EnableHTTP2 || !e.Client.FollowRedirects || !e.SendExemplars || e.SendNativeHistograms || e.RemoteTimeout != 30*time.Second {
		t.Errorf("got %+v", e)
	}
}

func TestArgumentsThatAreRefused(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		var a remotewrite.Arguments
		err := syntax.Unmarshal([]byte(text), &a)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot %v, want %q", text, err, want)
		}
	}
	in := func(more string) string { return endpoint("http://x/", more) }
	f(`endpoint { }`, "url")
	f(endpoint("x", ""), `url must begin with "http://" or "https://"`)
	f(endpoint("http://", ""), "url has no host")
	f(in(`protobuf_message = "x"`), `unknown protobuf_message "x"`)
	f(in(`remote_timeout = "0s"`), "remote_timeout")
	f(in("sigv4 {\n access_key = \"x\"\n }"), "access_key and secret_key must be set together")
	f(in("sigv4 {\n external_id = \"x\"\n }"), "external_id can only be used with role_arn")
	f(in("sigv4 { }\n google_iam { }"), "at most one authentication method may be set, not sigv4 and google_iam")
	f(in("sigv4 { }\n basic_auth {\n username = \"x\"\n }"), "not basic_auth and sigv4")
	f(in("azuread { }"), "exactly one of managed_identity, workload_identity, oauth, certificate and sdk must be set, not none")
	f(in("azuread {\n sdk { }\n managed_identity { }\n }"), "not managed_identity and sdk")
	f(in("azuread {\n managed_identity {\n client_id = \"x\"\n }\n }"), "client_id is invalid")
	f(in("azuread {\n cloud = \"Mars\"\n sdk { }\n }"), `not "Mars"`)
	f(in("azuread {\n sdk {\n tenant_id = \"a/b\"\n }\n }"), `sdk: tenant_id "a/b" is not valid`)
	f(in("azuread {\n scope = \"{}\"\n sdk { }\n }"), "scope")
	f(in("header_from_label { }"), "label")
	f(in("header_from_label {\n label = \"__name__\"\n }"), `"__name__" is no label that can be taken away`)
	f(in("header_from_label {\n label = \"a\"\n header = \"X Y\"\n }"), `"X Y" is no name of a header`)
	f(in("header_from_label {\n label = \"a\"\n header = \"authorization\"\n }"), "cannot be taken from a label")
	f(in("header_from_label {\n label = \"a\"\n default = \"x\\ny\"\n }"), "cannot be the value of a header")
	f(in("header_from_label {\n label = \"a\"\n max_values = 0\n }"), "max_values must be greater than 0")
	f(in(`headers = { "content-type" = "x" }`), `"content-type" is set by weir`)
	f(in(`headers = { "X Y" = "x" }`), `"X Y" is no name of a header`)
	f(in(`headers = { "d:" = "", "b:" = "", "c:" = "", "a:" = "" }`), `headers: "a:" is no name of a header
headers: "b:" is no name of a header
headers: "c:" is no name of a header
headers: "d:" is no name of a header`)
	f(in(`headers = { "X-Token" = "hunter2\n" }`), `the value of "X-Token" has a line feed or another control character: no request can have it`)
	f(in(`bearer_token = "a"
		basic_auth { username = "b" }`), "at most one of")
	f(in(`nonsense = 1`), "nonsense")
	f(in("queue_config { max_shards = 0 }"), "max_shards must be greater than 0")
	f(in("queue_config { min_shards = -1 }"), "min_shards must be greater than 0")
	f(in("queue_config { capacity = 0 }"), "capacity must be greater than 0")
	f(in("queue_config { max_samples_per_send = 0 }"), "max_samples_per_send must be greater than 0")
	f(in("queue_config { batch_send_deadline = \"-1s\" }"), "batch_send_deadline must be greater than 0")
	f(in("queue_config { max_backoff = \"1ms\" }"), "max_backoff must not be less")
	f(in("metadata_config { send_interval = \"0s\" }"), "send_interval")
	f(in("write_relabel_config { action = \"drop\"\n regex = \"(\" }"), "regex")
	f(in("")+in(""), "two endpoints have the URL http://x/ and no name")
	f(in(`name = "n"`)+in(`name = "n"`), `two endpoints are named "n"`)
	f(`external_labels = { "__name__" = "x" }`, "no valid label name")
	f("external_labels = { \"d\" = \"\\xff\", \"b\" = \"\\xff\", \"c\" = \"\\xff\", \"a\" = \"\\xff\" }", `external_labels: the value of "a" is not UTF-8
external_labels: the value of "b" is not UTF-8
external_labels: the value of "c" is not UTF-8
external_labels: the value of "d" is not UTF-8`)
	f(`journal { fsync = "sometimes" }`, "fsync must be")
	f(`journal { on_full = "explode" }`, "on_full must be")
	f(`journal { max_size = "1KiB" }`, "max_size must be at least 1MiB")
	f(`journal { max_age = "0s" }`, "max_age must be greater than 0")
	f(`journal { max_size = "lots" }`, `cannot read "lots" as a size`)
	f("journal { max_age = \"1h\" }\nwal { max_keepalive_time = \"2h\" }", "they are the same")
	f(`endpoint { url = "http://user:hunter2@bad host/" }`, "url")
	var a remotewrite.Arguments
	if err := syntax.Unmarshal([]byte(`endpoint { url = "http://user:hunter2@bad host/" }`), &a); strings.Contains(err.Error(), "url: ") && strings.Contains(strings.SplitN(err.Error(), "url: ", 2)[1], "hunter2") {
		t.Errorf("the password is shown: %v", err)
	}
}

func TestArgumentsWithoutEffect(t *testing.T) {
	a := decode(t, `wal {
		truncate_frequency = "1h"
		min_keepalive_time = "1m"
		max_keepalive_time = "2h"
	}`)
	diff(t, []string{"truncate_frequency has no effect", "min_keepalive_time has no effect"}, a.WAL.Warnings())
}
