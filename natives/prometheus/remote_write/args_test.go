package remotewrite_test

import (
	"strings"
	"testing"
	"time"

	"github.com/grafana/alloy/syntax"

	remotewrite "github.com/weir-run/weir/natives/prometheus/remote_write"
)

func TestDefaults(t *testing.T) {
	a := decode(t, `endpoint { url = "http://x/" }`)
	e := a.Endpoints[0]
	diff(t, remotewrite.Queue{
		Capacity: 10000, MaxShards: 8, MinShards: 1, MaxSamplesPerSend: 2000, BatchSendDeadline: 5 * time.Second,
		MinBackoff: 30 * time.Millisecond, MaxBackoff: 5 * time.Second, RetryOnHTTP429: true,
	}, e.Queue)
	diff(t, remotewrite.Metadata{Send: true, SendInterval: time.Minute, MaxSamplesPerSend: 2000}, e.Metadata)
	diff(t, remotewrite.Journal{MaxSize: 10 << 30, MaxAge: 8 * time.Hour, Fsync: "none", OnFull: "block"}, a.Journal)
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
	f(in(`protobuf_message = "io.prometheus.write.v2.Request"`), "not supported yet")
	f(in(`protobuf_message = "x"`), `unknown protobuf_message "x"`)
	f(in(`round_robin_dns = true`), "round_robin_dns is not supported yet")
	f(in(`remote_timeout = "0s"`), "remote_timeout")
	f(in("sigv4 {\n region = \"x\"\n }"), "sigv4 is not supported yet")
	f(in("azuread {\n managed_identity { client_id = \"x\" }\n }"), "azuread is not supported yet")
	f(in("google_iam { }"), "google_iam is not supported yet")
	f(in(`headers = { "content-type" = "x" }`), `"content-type" is set by weir`)
	f(in(`bearer_token = "a"
		basic_auth { username = "b" }`), "at most one of")
	f(in(`nonsense = 1`), "nonsense")
	f(in("queue_config { max_shards = 0 }"), "max_shards must be greater than 0")
	f(in("queue_config { max_backoff = \"1ms\" }"), "max_backoff must not be less")
	f(in("metadata_config { send_interval = \"0s\" }"), "send_interval")
	f(in("write_relabel_config { action = \"drop\"\n regex = \"(\" }"), "regex")
	f(in("")+in(""), "two endpoints have the URL http://x/ and no name")
	f(in(`name = "n"`)+in(`name = "n"`), `two endpoints are named "n"`)
	f(`external_labels = { "__name__" = "x" }`, "no valid label name")
	f(`journal { fsync = "sometimes" }`, "fsync must be")
	f(`journal { on_full = "explode" }`, "on_full must be")
	f(`journal { max_size = "1KiB" }`, "max_size must be at least 1MiB")
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
