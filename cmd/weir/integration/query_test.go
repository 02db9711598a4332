//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"
)

// series is one series of a query result. Values are formatted by Prometheus.
type series struct {
	Metric map[string]string
	Value  [2]any
	Values [][2]any
}

// key formats the labels, except those in without.
func (s series) key(without ...string) string {
	m := map[string]string{}
	for k, v := range s.Metric {
		m[k] = v
	}
	for _, k := range without {
		delete(m, k)
	}
	var b strings.Builder
	names := make([]string, 0, len(m))
	for k := range m {
		names = append(names, k)
	}
	sort.Strings(names)
	for _, k := range names {
		fmt.Fprintf(&b, "%s=%q ", k, m[k])
	}
	return b.String()
}

// query queries Prometheus. If at is zero, it uses the current time.
func query(prometheus, promql string, at time.Time) ([]series, error) {
	form := url.Values{"query": {promql}}
	if !at.IsZero() {
		form.Set("time", strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64))
	}
	resp, err := http.PostForm(prometheus+"/api/v1/query", form)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var r struct {
		Error string
		Data  struct{ Result []series }
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("%w: %s", err, body)
	}
	if r.Error != "" {
		return nil, fatal{fmt.Errorf("%s: %s", promql, r.Error)}
	}
	return r.Data.Result, nil
}

func mustQuery(t *testing.T, prometheus, promql string, at time.Time) []series {
	t.Helper()
	ss, err := query(prometheus, promql, at)
	if err != nil {
		t.Fatal(err)
	}
	return ss
}

// number returns the single value of a query, or 0 if the result is empty.
func number(prometheus, promql string, at time.Time) (float64, error) {
	ss, err := query(prometheus, promql, at)
	if err != nil || len(ss) == 0 {
		return 0, err
	}
	return strconv.ParseFloat(ss[0].Value[1].(string), 64)
}

// sequence returns the values of a matrix row as integers.
func (s series) sequence(t *testing.T) []int {
	t.Helper()
	out := make([]int, len(s.Values))
	for i, v := range s.Values {
		f, err := strconv.ParseFloat(v[1].(string), 64)
		if err != nil || f != float64(int(f)) {
			t.Fatalf("%s has the value %v, want a whole number", s.key(), v[1])
		}
		out[i] = int(f)
	}
	return out
}

// checkScrapes checks that the values are the numbers of scrapes, in order, and
// that no more are missing than failed.
func (s series) checkScrapes(t *testing.T, failed int) {
	t.Helper()
	seen := s.sequence(t)
	last := 0
	for _, n := range seen {
		if n <= last {
			t.Errorf("%s: %d comes after %d", s.key(), n, last)
		}
		last = n
	}
	if missing := last - len(seen); missing > failed {
		t.Errorf("%s: %d scrapes are missing, %d failed: %v", s.key(), missing, failed, seen)
	}
}

// exemplarLabels formats the exemplars of the series that sel selects.
func exemplarLabels(prometheus, sel string) (string, error) {
	resp, err := http.PostForm(prometheus+"/api/v1/query_exemplars", url.Values{
		"query": {sel}, "start": {"1600000000"}, "end": {strconv.FormatInt(time.Now().Unix()+60, 10)},
	})
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var r struct {
		Data []struct{ Exemplars []json.RawMessage }
	}
	if err := json.NewDecoder(resp.Body).Decode(&r); err != nil {
		return "", err
	}
	var b strings.Builder
	for _, d := range r.Data {
		for _, e := range d.Exemplars {
			b.Write(e)
		}
	}
	return b.String(), nil
}
