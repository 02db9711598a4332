package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	httpservice "github.com/weir-run/weir/engine/service/http"
	"github.com/weir-run/weir/engine/tap"
)

const playgroundConfig = `
local.file "secret" {
  filename  = "SECRET"
  is_secret = true
}

prometheus.relabel "rules" {
  forward_to = []
}

loki.relabel "rules" {
  forward_to = []
}

discovery.relabel "rules" {
  targets = [{__address__ = "10.1.0.1:9100", env = "prod"}, {__address__ = "10.1.0.2:9100", env = "s3cret-text"}]
}

loki.process "stages" {
  forward_to = []
}

loki.secretfilter "f" {
	forward_to = []
}

expr.filter "f" {
  keep       = "true"
  forward_to = []
}

expr.set "s" {
  label "a" { value = "'b'" }
  forward_to = []
}

expr.route "r" {
  route "large" {
    when       = "value > 1"
    forward_to = []
  }
  forward_to = []
}

prometheus.enrich "e" {
  targets                = [{__address__ = "10.1.0.1", owner = "ops"}]
  target_to_metric_match = { __address__ = "host" }
  labels_to_copy         = ["owner"]
  forward_to             = []
}

foreach "each" {
  collection = ["a"]
  var        = "x"

  template {
    prometheus.relabel "inner" {
      forward_to = []

      rule {
        target_label = "site"
        replacement  = x
      }
    }
  }
}
`

// TestPlaygroundOfBlocks: copies of all components that have a playground process pasted records.
func TestPlaygroundOfBlocks(t *testing.T) {
	w := newAPIWeir(t)
	w.save("secret.txt", "s3cret-text")
	w.save("config/main.alloy", strings.Replace(playgroundConfig, "SECRET", w.dir+"/secret.txt", 1))
	w.run()
	for _, c := range []struct {
		name, id, body string
		req            httpservice.PlaygroundRequest
		want           string
	}{
		{"rules", "prometheus.relabel.rules", `
  forward_to = []
  rule {
    source_labels = ["__name__"]
    regex         = "m"
    action        = "drop"
  }
  rule {
    target_label = "site"
    replacement  = "lab"
  }`, httpservice.PlaygroundRequest{Pasted: tap.Pasted{Metrics: "up 1\nm 2\n"}}, "2 records\nchanged up{} 1 site=\"lab\" added [rule 2 replace: site=\"lab\" added]\ndropped m{} 2 [rule 1 drop: dropped]\n"},
		{"an invalid regex", "prometheus.relabel.rules", `
  forward_to = []
  rule {
    regex = "("
  }`, httpservice.PlaygroundRequest{Pasted: tap.Pasted{Metrics: "up 1\n"}}, "0 records\nline 4: rule.regex: cannot compile regex"},
		{"an invalid action", "prometheus.relabel.rules", `
  forward_to = []
  rule {
    action = "dorp"
  }`, httpservice.PlaygroundRequest{Pasted: tap.Pasted{Metrics: "up 1\n"}}, "0 records\nline 4: "},
		{"invalid samples", "prometheus.relabel.rules", `
  forward_to = []`, httpservice.PlaygroundRequest{Pasted: tap.Pasted{Metrics: "up 1\nup {"}}, "0 records\ninput, line 2: "},
		{"another signal", "prometheus.relabel.rules", `
  forward_to = []`, httpservice.PlaygroundRequest{Pasted: tap.Pasted{Logs: "{} hello"}}, "0 records\nline 0: the block does not accept logs"},
		{"streams", "loki.relabel.rules", `
  forward_to = []
  rule {
    target_label = "site"
    replacement  = "lab"
  }`, httpservice.PlaygroundRequest{Pasted: tap.Pasted{Logs: "{a=\"b\"} hello\n"}}, "1 records\nchanged {a=b} hello site=\"lab\" added [rule 1 replace: site=\"lab\" added]\n"},
		{"targets", "discovery.relabel.rules", `
  targets = []
  rule {
    source_labels = ["env"]
    regex         = "test"
    action        = "drop"
  }
  rule {
    source_labels = ["__address__"]
    target_label  = "instance"
  }`, httpservice.PlaygroundRequest{Targets: "{\"__address__\":\"h:1\"}\n\n{\"__address__\":\"h:2\",\"env\":\"test\"}\n"},
			"2 records\nchanged {__address__=h:1} instance=\"h:1\" added [rule 2 replace: instance=\"h:1\" added]\ndropped {__address__=h:2,env=test} [rule 1 drop: dropped]\n"},
		{"invalid targets", "discovery.relabel.rules", `
  targets = []`, httpservice.PlaygroundRequest{Targets: "{}\nh:1\n"}, "0 records\ninput, line 2: a target is a JSON object"},
		{"a line of which little stays", "loki.process.stages", `
  forward_to = []
  stage.logql {
    pipeline = "| json | level != \"debug\" | line_format \"{{.msg}}\""
    labels   = ["level"]
  }`, httpservice.PlaygroundRequest{Pasted: tap.Pasted{Logs: "{app=\"api\"} {\"level\":\"debug\",\"msg\":\"tick\"}\n{app=\"api\"} {\"level\":\"error\",\"msg\":\"full\"}\n"}},
			"2 records\ndropped {app=api} {\"level\":\"debug\",\"msg\":\"tick\"} [stage 1 logql: dropped]\nchanged {app=api} {\"level\":\"error\",\"msg\":\"full\"} level=\"error\" added, "},
		{"stages and LogQL", "loki.process.stages", `
  forward_to = []
  stage.match {
    selector = "{app=\"api\"} |= \"debug\""
    action   = "drop"
  }
  stage.json {
    expressions = { level = "" }
  }
  stage.labels {
    values = { level = "" }
  }`, httpservice.PlaygroundRequest{Pasted: tap.Pasted{Logs: "{app=\"api\"} {\"level\":\"debug\"}\n{app=\"api\"} {\"level\":\"warn\"}\n"}},
			"2 records\ndropped {app=api} {\"level\":\"debug\"} [stage 1 match: dropped]\nchanged {app=api} {\"level\":\"warn\"} level=\"warn\" added [stage 2 json: extracted level=\"warn\"] [stage 3 labels: level=\"warn\" added]\n"},
		{"an invalid selector", "loki.process.stages", `
  forward_to = []
  stage.match {
    selector = "{app="
    stage.drop { longer_than = "1B" }
  }`, httpservice.PlaygroundRequest{Pasted: tap.Pasted{Lines: "a\n"}}, "0 records\nline 4: "},
		{"lines without labels", "loki.process.stages", `
  forward_to = []
  stage.drop { expression = "^\\{" }`, httpservice.PlaygroundRequest{Pasted: tap.Pasted{Lines: "{a=\"b\"} one\r\n\n  two\n"}}, "2 records\ndropped {} {a=\"b\"} one [stage 1 drop: dropped]\nnote unchanged records: 1\n"},
		{"lines that the node keeps for a while", "loki.process.stages", `
  forward_to = []
  stage.multiline { firstline = "^\\S" }`, httpservice.PlaygroundRequest{Pasted: tap.Pasted{Lines: "a\n b\n"}}, "2 records\nchanged {} a line"},
		{"metrics of stages", "loki.process.stages", `
  forward_to = []
  stage.metrics {
    metric.counter {
      name      = "lines"
      action    = "inc"
      match_all = true
    }
  }`, httpservice.PlaygroundRequest{Pasted: tap.Pasted{Lines: "a\n"}}, "1 records\nnote unchanged records: 1\n"},
		{"a file that the node does not read", "loki.process.stages", `
  forward_to = []
  stage.match {
    selector = "{a=\"b\"}"
    stage.geoip {
      db      = "/etc/hostname"
      source  = "ip"
      db_type = "city"
    }
  }`, httpservice.PlaygroundRequest{Pasted: tap.Pasted{Lines: "a\n"}}, "0 records\nline 1: a copy cannot read \"/etc/hostname\""},
		{"other rules for secrets", "loki.secretfilter.f", `
  forward_to      = []
  gitleaks_config = "/etc/hostname"`, httpservice.PlaygroundRequest{Pasted: tap.Pasted{Lines: "a\n"}}, "0 records\nline 3: a copy cannot read \"/etc/hostname\""},
		{"secrets in lines", "loki.secretfilter.f", `
  forward_to  = []
  redact_with = "<gone>"`, httpservice.PlaygroundRequest{Pasted: tap.Pasted{Lines: "token ghp_R7x2Kq9LmZ4vW8pT1yB6nD3sF5hJ0cA2eG7u\n"}}, "1 records\nchanged {} token ghp_R7x2Kq9LmZ4vW8pT1yB6nD3sF5hJ0cA2eG7u line \"token ghp_R7x2Kq9LmZ4vW8pT1yB6nD3sF5hJ0cA2eG7u\" → \"token <gone>\"\n"},
		{"a filter", "expr.filter.f", `
  keep       = "value > 1"
  forward_to = []`, httpservice.PlaygroundRequest{Pasted: tap.Pasted{Metrics: "m 1\nm{a=\"b\"} 2\n"}}, "2 records\ndropped m{} 1 [keep: dropped]\nnote unchanged records: 1\n"},
		{"an invalid expression", "expr.filter.f", `
  forward_to = []
  keep       = "value >"`, httpservice.PlaygroundRequest{Pasted: tap.Pasted{Metrics: "m 1\n"}}, "0 records\nline 3: "},
		{"a field of the other signal", "expr.filter.f", `
  forward_to = []
  keep       = "value > 1"`, httpservice.PlaygroundRequest{Pasted: tap.Pasted{Lines: "a\n"}}, "0 records\nline 0: the block does not accept logs: "},
		{"fields", "expr.set.s", `
  label "size" { value = "string(len(line))" }
  forward_to = []`, httpservice.PlaygroundRequest{Pasted: tap.Pasted{Lines: "hello\n"}}, "1 records\nchanged {} hello size=\"5\" added [label size: size=\"5\" added]\n"},
		{"routes", "expr.route.r", `
  forward_to = []
  route "large" {
    when       = "value > 1"
    forward_to = []
  }`, httpservice.PlaygroundRequest{Pasted: tap.Pasted{Metrics: "m 1\nm{a=\"b\"} 2\n"}}, "2 records\nunchanged m{} 1 [route forward_to: ]\nunchanged m{a=b} 2 [route 1 large: ]\n"},
		{"labels of targets", "prometheus.enrich.e", `
  targets                = [{__address__ = "10.1.0.1", owner = "ops"}]
  target_to_metric_match = { __address__ = "host" }
  labels_to_copy         = ["owner"]
  forward_to             = []`, httpservice.PlaygroundRequest{Pasted: tap.Pasted{Metrics: "m{host=\"10.1.0.1\"} 1\n"}}, "1 records\nchanged m{host=10.1.0.1} 1 owner=\"ops\" added\n"},
		{"the variable of a foreach", "foreach.each/foreach_a_1/prometheus.relabel.inner", `
  forward_to = []
  rule {
    target_label = "place"
    replacement  = x + "!"
  }`, httpservice.PlaygroundRequest{Pasted: tap.Pasted{Metrics: "m 1\n"}}, "1 records\nchanged m{} 1 place=\"a!\" added [rule 1 replace: place=\"a!\" added]\n"},
		{"secrets", "prometheus.relabel.rules", `
  forward_to = []
  rule {
    target_label = "v"
    replacement  = "a s3cret-text"
  }`, httpservice.PlaygroundRequest{Pasted: tap.Pasted{Metrics: "m 1\n"}}, "1 records\nchanged m{} 1 v=\"a (secret)\" added [rule 1 replace: v=\"a (secret)\" added]\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := c.id[strings.LastIndex(c.id, "/")+1:]
			dot := strings.LastIndex(name, ".")
			c.req.Text = fmt.Sprintf("%s %q {%s\n}", name[:dot], name[dot+1:], c.body)
			if got := w.play(c.id, c.req); !strings.HasPrefix(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}

	var start httpservice.PlaygroundStart
	w.playground("GET", "discovery.relabel.rules", "", &start)
	if want := "{\"__address__\":\"10.1.0.1:9100\",\"env\":\"prod\"}\n{\"__address__\":\"10.1.0.2:9100\",\"env\":\"(secret)\"}\n"; !start.Targets || start.Metrics || start.Logs || start.Input != want {
		t.Errorf("got %+v", start)
	}
	if strings.Contains(start.Text, "s3cret") || !strings.HasPrefix(start.Text, `discovery.relabel "rules" {`) {
		t.Errorf("got the block %s", start.Text)
	}
	w.playground("GET", "foreach.each/foreach_a_1/prometheus.relabel.inner", "", &start)
	if !strings.HasPrefix(start.Text, "prometheus.relabel \"inner\" {\n\tforward_to = []\n") {
		t.Errorf("got the block %s", start.Text)
	}
}

// playground makes a request to the playground of a node.
func (w *apiWeir) playground(method, id, body string, answer any) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.socket.URL+"/api/v0/playground/"+id, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := w.socket.Client().Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(answer); err != nil || resp.StatusCode != http.StatusOK {
		w.t.Fatalf("%s: got %s, %v", id, resp.Status, err)
	}
}

// play runs a copy and returns the result as lines.
func (w *apiWeir) play(id string, r httpservice.PlaygroundRequest) string {
	w.t.Helper()
	body, err := json.Marshal(r)
	if err != nil {
		w.t.Fatal(err)
	}
	var res httpservice.PlaygroundResult
	w.playground("POST", id, string(body), &res)
	var b strings.Builder
	fmt.Fprintf(&b, "%d records\n", res.Records)
	for _, text := range res.Events {
		var e struct {
			Kind   string
			Record *struct {
				Name, Line string
				Labels     map[string]string
				Value      any
			}
			Changes []string
			Text    string
			Steps   []struct {
				Within, Kind, Name string
				Index              int
				Dropped            bool
				Changes            []string
			}
		}
		if strings.Contains(string(text), "s3cret-text") {
			w.t.Errorf("%s shows a secret: %s", id, text)
		}
		if err := json.Unmarshal(text, &e); err != nil {
			w.t.Fatal(err)
		}
		fmt.Fprint(&b, e.Kind, " ")
		if r := e.Record; r != nil {
			var labels []string
			for _, name := range []string{"__address__", "a", "app", "env", "host"} {
				if r.Labels[name] != "" {
					labels = append(labels, name+"="+r.Labels[name])
				}
			}
			fmt.Fprintf(&b, "%s{%s}", r.Name, strings.Join(labels, ","))
			if r.Line != "" {
				fmt.Fprint(&b, " ", r.Line)
			}
			if r.Value != nil {
				fmt.Fprint(&b, " ", r.Value)
			}
			if len(e.Changes) > 0 {
				b.WriteByte(' ')
			}
		}
		fmt.Fprint(&b, e.Text+strings.Join(e.Changes, ", "))
		for _, s := range e.Steps {
			if s.Dropped {
				s.Changes = append(s.Changes, "dropped")
			}
			what := strings.Fields(strings.Replace(fmt.Sprint(s.Within, " ", s.Kind, " ", s.Index, " ", s.Name), " 0 ", " ", 1))
			fmt.Fprintf(&b, " [%s: %s]", strings.Join(what, " "), strings.Join(s.Changes, ", "))
		}
		b.WriteByte('\n')
	}
	for _, e := range res.Errors {
		where := "line"
		if e.Input {
			where = "input, line"
		}
		fmt.Fprintf(&b, "%s %d: %s\n", where, e.Line, e.Message)
	}
	return b.String()
}
