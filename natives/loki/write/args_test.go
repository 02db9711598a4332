package write_test

import (
	"strings"
	"testing"
	"time"

	"github.com/grafana/alloy/syntax"

	"github.com/weir-run/weir/engine/outbox"
	"github.com/weir-run/weir/natives/loki/write"
)

func TestDefaults(t *testing.T) {
	a := decode(t, `endpoint { url = "http://x/" }`)
	e := a.Endpoints[0]
	diff(t, write.Queue{Capacity: 10 << 20, MinShards: 1, DrainTimeout: 15 * time.Second, BlockOnOverflow: true}, e.Queue)
	diff(t, outbox.Arguments{MaxSize: 10 << 30, MaxAge: 8 * time.Hour, Fsync: "none", OnFull: "block"}, a.Journal)
	diff(t, []time.Duration{time.Second, 10 * time.Second, 500 * time.Millisecond, 5 * time.Minute}, []time.Duration{e.BatchWait, e.RemoteTimeout, e.MinBackoff, e.MaxBackoff})
	if !e.Client.EnableHTTP2 || !e.Client.FollowRedirects || !e.RetryOnHTTP429 || e.MaxBackoffRetries != 0 || e.BatchSize != 1<<20 {
		t.Errorf("got %+v", e)
	}
}

func TestArgumentsThatAreRefused(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		var a write.Arguments
		err := syntax.Unmarshal([]byte(text), &a)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot %v, want %q", text, err, want)
		}
	}
	in := func(more string) string { return "endpoint {\n url = \"http://x/\"\n" + more + "\n}\n" }
	f(``, "endpoint")
	f(`endpoint { }`, "url")
	f(`endpoint { url = "x" }`, `url must begin with "http://" or "https://"`)
	f(`endpoint { url = "http://" }`, "url has no host")
	f(`endpoint { url = "http://user:secret@ x/" }`, "url: ")
	f(in(`remote_timeout = "0s"`), "remote_timeout must be greater than 0")
	f(in(`batch_wait = "-1s"`), "batch_wait must not be negative")
	f(in(`batch_size = 0`), "batch_size must be greater than 0")
	f(in(`min_backoff_period = "0s"`), "min_backoff_period must be greater than 0")
	f(in("min_backoff_period = \"2s\"\nmax_backoff_period = \"1s\""), "max_backoff_period must not be less than min_backoff_period")
	f(in(`max_backoff_retries = -1`), "max_backoff_retries must not be negative")
	f(in(`tenant_id = "a\nb"`), `tenant_id "a\nb" has a character that a header cannot have`)
	f(in(`tenant_id = " a"`), `tenant_id " a"`)
	f(in("tenant_id = \"a\"\nheaders = { \"x-scope-orgid\" = \"b\" }"), "at most one of X-Scope-OrgID and tenant_id")
	f(in(`headers = { "content-type" = "x" }`), `"content-type" is set by weir`)
	f(in(`headers = { "X Y" = "x" }`), `"X Y" is no name of a header`)
	f(in(`headers = { "X-Y" = "x\ny" }`), `the value of "X-Y" has a line feed`)
	f(in("bearer_token = \"x\"\nbasic_auth {\n username = \"u\"\n}"), "at most one")
	f(in("queue_config {\n capacity = 0\n min_shards = 0\n drain_timeout = \"-1s\"\n}"), "capacity must be greater than 0\nmin_shards must be greater than 0\ndrain_timeout must not be negative")
	f(in("")+in(""), "two endpoints have the URL http://x/ and no name")
	f(in(`name = "a"`)+in(`name = "a"`), `two endpoints are named "a"`)
	f(`external_labels = { "__path__" = "x" }`+"\n"+in(""), `"__path__" would not be sent`)
	f(`external_labels = { "__tenant_id__" = "x\ny" }`+"\n"+in(""), `"x\ny" cannot be a tenant`)
	f("max_streams = -1\n"+in(""), "max_streams must not be negative")
	f(in("")+"wal { max_segment_age = \"0s\" }", "max_segment_age must be greater than 0")
	f(in("")+"wal { max_segment_age = \"2h\" }\njournal { max_age = \"1h\" }", "at most one of wal's max_segment_age and journal's max_age")
	f(in("queue_config { drain_timeout = \"1s\" }")+"wal { drain_timeout = \"2s\" }", "at most one of its drain_timeout and wal's")
	f(in("")+"journal { max_size = \"1KiB\" }", "max_size must be at least 1MiB")
}

func TestWarnings(t *testing.T) {
	a := decode(t, `endpoint { url = "http://x/" }
wal {
	enabled            = true
	min_read_frequency = "1s"
	max_read_frequency = "1s"
	max_segment_age    = "2h"
}`)
	diff(t, []string{"enabled has no effect: there is always a journal", "min_read_frequency has no effect", "max_read_frequency has no effect"}, a.WAL.Warnings())
}
