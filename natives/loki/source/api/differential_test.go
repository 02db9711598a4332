//go:build !nologql

package api_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	lokipush "github.com/grafana/loki/pkg/push"
	"github.com/grafana/loki/v3/pkg/logql/syntax"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/weir-run/weir/natives/loki/source/api"
)

// theirs decodes a body with Loki's message and its parser of labels. JSON is
// decoded with the standard library, because Loki's decoder accepts a lot of
// invalid JSON.
func theirs(asJSON bool, body []byte) ([]string, error) {
	var req lokipush.PushRequest
	var err error
	if asJSON {
		req, err = decoded(body)
	} else {
		err = req.Unmarshal(body)
	}
	if err != nil {
		return nil, err
	}
	for i, s := range req.Streams {
		ls, err := syntax.ParseLabels(s.Labels)
		if err != nil {
			return nil, err
		}
		req.Streams[i].Labels = ls.String()
	}
	var out []string
	for _, s := range req.Streams {
		for _, e := range s.Entries {
			meta := slices.Clone(e.StructuredMetadata)
			slices.SortStableFunc(meta, func(a, b lokipush.LabelAdapter) int { return cmp.Compare(a.Name, b.Name) })
			line := fmt.Sprintf("%s %d %q", s.Labels, e.Timestamp.UnixNano(), e.Line)
			for _, l := range meta {
				line += fmt.Sprintf(" %q=%q", l.Name, l.Value)
			}
			out = append(out, line)
		}
	}
	return out, nil
}

// decoded decodes a push request in JSON.
func decoded(body []byte) (req lokipush.PushRequest, err error) {
	var in struct {
		Streams []struct {
			Stream map[string]string   `json:"stream"`
			Values [][]json.RawMessage `json:"values"`
		} `json:"streams"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return req, err
	}
	for _, s := range in.Streams {
		out := lokipush.Stream{Labels: labels.FromMap(s.Stream).String()}
		for _, v := range s.Values {
			var at, line string
			meta := map[string]string{}
			for i, to := range []any{&at, &line, &meta}[:min(3, len(v))] {
				if err := json.Unmarshal(v[i], to); err != nil {
					return req, err
				}
			}
			ns, err := strconv.ParseInt(at, 10, 64)
			if err != nil || len(v) < 2 {
				return req, fmt.Errorf("no time and line: %v", v)
			}
			e := lokipush.Entry{Timestamp: time.Unix(0, ns), Line: line}
			for k, v := range meta {
				e.StructuredMetadata = append(e.StructuredMetadata, lokipush.LabelAdapter{Name: k, Value: v})
			}
			out.Entries = append(out.Entries, e)
		}
		req.Streams = append(req.Streams, out)
	}
	return req, nil
}

// ours decodes it with our code, and formats labels like Loki.
func ours(d *api.Decoder, asJSON bool, body []byte) ([]string, error) {
	rows, bad, err := d.Rows(asJSON, body)
	if err = cmp.Or(err, bad); err != nil {
		return nil, err
	}
	var out []string
	for _, r := range rows {
		line := fmt.Sprintf("%s %d %q", r.Labels, r.T, r.Line)
		for _, l := range r.Meta {
			line += fmt.Sprintf(" %q=%q", l.Name, l.Value)
		}
		out = append(out, line)
	}
	return out, nil
}

// same compares the lines of both, in any order of streams.
func same(t *testing.T, asJSON bool, body []byte) {
	t.Helper()
	want, err := theirs(asJSON, body)
	got, err2 := ours(api.NewDecoder(), asJSON, body)
	if err != nil || err2 != nil {
		if (err == nil) != (err2 == nil) {
			t.Errorf("Loki says %v, weir %v of %q", err, err2, body)
		}
		return
	}
	for i := range want { // Loki writes a space between labels
		want[i] = spaces(want[i])
	}
	slices.Sort(want)
	slices.Sort(got)
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("%q (-Loki +weir):\n%s", body, d)
	}
}

// spaces removes the spaces between labels.
func spaces(line string) string {
	return string(bytes.ReplaceAll([]byte(line), []byte(`", `), []byte(`",`)))
}

func TestSameAsLoki(t *testing.T) {
	f := func(ss ...lokipush.Stream) {
		t.Helper()
		same(t, false, marshal(t, ss...))
	}
	f()
	f(stream(`{b="2", a="1"}`, "one", "two"), stream(`{c="é\n\"x\""}`, "three"))
	withMeta := stream(`{a="1"}`, "one", "", "three")
	withMeta.Entries[0].StructuredMetadata = lokipush.LabelsAdapter{{Name: "z", Value: "1"}, {Name: "a", Value: ""}}
	f(withMeta)
	f(stream(`{a=}`, "x"))
	f(stream(`{a="1", b=""}`, "x"))

	for _, text := range []string{
		jsonBody,
		`{"streams": []}`,
		`{"streams": [{"values": [["1", "values first"]], "stream": {"a": "b"}}]}`,
		`{"other": [1, {"x": null}], "streams": [{"stream": {"a": "\u0041\ud83d\ude00\/"}, "values": [["17", "tab\t\u00e9 \\ \" \/", {}]], "more": true}]}`,
		`{"streams": [{"stream": {"a": "b"}, "values": [["-5", "x"]]}]}`,
		`{"streams": [{"stream": {"a": "b"}, "values": [[5, "x"]]}]}`,
		`{"streams": [{"stream": {"a": "b"}, "values": [["5", 6]]}]}`,
		`{"streams": [{"stream": {"a": "b"}, "values": [["5", "x"]`,
		`{"streams": [{"stream": {"a": "b"}, "values": [["5", "x", {"k": "v", "b": "w"}], ["6", "y"]]}]}`,
		`{"streams": 1}`,
		`nonsense`,
	} {
		same(t, true, []byte(text))
	}
}

func FuzzProtobuf(f *testing.F) {
	f.Add(marshal(f, stream(`{b="2", a="1"}`, "one", "two"), stream(`{c="d"}`, "three")))
	f.Fuzz(func(t *testing.T, body []byte) {
		rows, bad, err := api.NewDecoder().Rows(false, body)
		var req lokipush.PushRequest
		err2 := req.Unmarshal(body)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("weir says %v, Loki's type %v", err, err2)
		}
		if err != nil || bad != nil {
			return
		}
		n := 0
		for _, s := range req.Streams {
			n += len(s.Entries)
		}
		if n != len(rows) {
			t.Fatalf("%d lines, want %d", len(rows), n)
		}
	})
}

func FuzzJSON(f *testing.F) {
	f.Add(jsonBody)
	f.Add(`{"streams": [{"values": [["1", "values first"]], "stream": {"a": "b"}}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		got, err := ours(api.NewDecoder(), true, []byte(body))
		want, err2 := theirs(true, []byte(body))
		if err != nil || err2 != nil {
			return // the standard library is stricter in some cases and more lenient in others
		}
		for i := range want {
			want[i] = spaces(want[i])
		}
		for i := range got {
			got[i] = spaces(got[i])
		}
		slices.Sort(want)
		slices.Sort(got)
		if len(got) != len(want) {
			t.Fatalf("%d lines, want %d", len(got), len(want))
		}
	})
}
