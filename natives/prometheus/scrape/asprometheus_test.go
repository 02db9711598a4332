package scrape

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

var valueRE = regexp.MustCompile(`(?m)^([^#\n][^\n]*?) ([0-9.e+-]+)( [0-9.]+)?( # \{.*)?$`)

// shift gives a body other values, like another scrape.
func shift(a answer, seed uint64) answer {
	r := rand.New(rand.NewPCG(seed, 1))
	a.body = valueRE.ReplaceAllStringFunc(a.body, func(line string) string {
		m := valueRE.FindStringSubmatch(line)
		v := fmt.Sprint(r.Uint64() >> (r.Uint64() % 60))
		switch r.Uint64() % 8 {
		case 0:
			v = fmt.Sprint(r.NormFloat64())
		case 1:
			v = []string{"NaN", "+Inf", "-Inf", "0", "-0", "1e+06"}[r.Uint64()%6]
		}
		return m[1] + " " + v + m[3] + m[4]
	})
	return a
}

// lines edits a body line by line.
func lines(a answer, edit func(i int, line string) string) answer {
	ls := strings.SplitAfter(a.body, "\n")
	for i, l := range ls {
		ls[i] = edit(i, l)
	}
	a.body = strings.Join(ls, "")
	return a
}

func without(a answer, drop func(i int) bool) answer {
	return lines(a, func(i int, l string) string {
		if drop(i) && !strings.HasPrefix(l, "# EOF") {
			return ""
		}
		return l
	})
}

func TestRealBodies(t *testing.T) {
	for _, name := range realBodies {
		t.Run(name, func(t *testing.T) {
			a := corpus(t, name)
			zipped := shift(a, 2)
			zipped.gzip = true
			compare(t, "extra_metrics = true", a, a, shift(a, 1), zipped,
				without(shift(a, 3), func(i int) bool { return i%7 == 3 }), // series disappear, including their metadata
				shift(a, 4), // they come back
				lines(shift(a, 5), func(i int, l string) string { return l + "# comment\n" }), // comments between the lines
				answer{status: 500}, shift(a, 6), shift(a, 7), shift(a, 8),
				without(shift(a, 9), func(i int) bool { return i > 40 }), shift(a, 10),
				answer{contentType: a.contentType, body: a.body + "!\n"}, shift(a, 11), shift(a, 12), shift(a, 13))
		})
	}
}

func TestBodies(t *testing.T) {
	f := func(name, args string, answers ...answer) {
		t.Helper()
		t.Run(name, func(t *testing.T) { compare(t, args, answers...) })
	}
	simple := text("# HELP a Some help.\n# TYPE a counter\na{x=\"1\"} 1\na{x=\"2\"} 2\nb 3\n")
	two := text("# HELP a Some help.\n# TYPE a counter\na{x=\"1\"} 2\na{x=\"2\"} 3e4\nb NaN\n")
	fewer := text("# HELP a Some help.\n# TYPE a counter\na{x=\"1\"} 2\nb 7\n")
	broken := text("# HELP a Some help.\n# TYPE a counter\na{x=\"1\"} 2\na{x=\"2\"} 3e4\nb 1_0\n")

	// Values and lines.
	f("values change", "", simple, two, simple, two, simple)
	f("series vanish and return", "", simple, simple, simple, fewer, fewer, fewer, simple, simple)
	f("another order", "", simple, simple, simple, text("b 3\na{x=\"2\"} 2\na{x=\"1\"} 1\n"), simple)
	f("values as they can be", "", valueBodies(valueSeeds)...)
	f("no line feed at the end", "", text("a 1\nb 2"), text("a 1\nb 2"), text("a 1\nb 2"), text("a 1\nb 2\n"), text("a 1\nb 2"), text("a 1\nb 2 "))
	first := text("a 1\nb 2\n")
	f("nothing before the first name", "", first, first, text("# TYPE x gauge\nx 1\nb 2\n"), first, text("y 1\nb 2\n"), text("y 1\nz 1\na 1\nb 2\n"), first)
	f("lines in the place of others", "", simple, simple, text("# HELP a Some help.\n# TYPE a counter\na{x=\"3\"} 1\na{x=\"2\"} 2\nb 3\n"),
		text("# HELP a Some help.\n# TYPE a counter\n# HELP a Other.\na{x=\"1\"} 1\na{x=\"4\"} 1\na{x=\"5\"} 2\nb 3\n"),
		text("# HELP a Some help.\n# TYPE a counter\n\na{x=\"6\"} 1 \na{x=\"4\"} 1 5\na{x=\"5\"} 2\nc 3\n"), simple, text("# HELP a Some help.\n# TYPE a counter\n"), simple)
	f("empty bodies", "", simple, text(""), text(""), simple, text("\n"), text("# just a comment\n"), simple)
	f("white space", "", text("a 1\n  b 2\nc   3\nd\t4\n\n\ne 5   \nf 6 1000\ng 7\t1000\n"), text("a 1\nb 2\nc   3\n"), text("a 1\nb 2\nc   3\n"), text("a 1\nb 2\nc  3\n"), text("a 1 \nb 2\nc   3\n"))
	f("name and value touch", "", text("foo+1\nbar{a=\"b\"}1\n"), text("foo+1\nbar{a=\"b\"}1\n"), text("foo1\nbar{a=\"b\"}1\n"), text("foo+1\nbar{a=\"b\"} 1\n"))
	f("quoted names", `metric_name_validation_scheme = "utf8"`, text("{\"a.b\",\"c d\"=\"e\"} 1\n"), text("{\"a.b\",\"c d\"=\"e\"} 2\n"), text("{\"a.b\",\"c d\"=\"e\"} 3\n"), text("{\"\"} 3\n"))
	f("UTF-8 names under legacy validation", "", simple, text("a 1\n{\"a.b\"} 1\n"), simple, simple)
	f("line feeds in label values", "", text("a{x=\"1\n2\"} 1\nb 2\n"), text("a{x=\"1\n2\"} 2\nb 3\n"), text("a{x=\"1\n2\"} 3\nb 4\n"))
	f("escapes", "", text("# HELP a \\\\ \\n x\na{x=\"\\\\ \\\" \\n\"} 1\n"), text("# HELP a \\\\ \\n x\na{x=\"\\\\ \\\" \\n\"} 2\n"))
	f("NUL", "", text("a{x=\"\x00\"} 1\n"), text("a{x=\"\x00\"} 2\n"), text("a{x=\"\x00\"} 1\x00\n"), text("a \x001\n"))
	f("labels that are there twice", "", simple, text("a 1\nb{x=\"1\",x=\"2\"} 1\nc 2\n"), simple, text("a 1\nb{x=\"1\",x=\"1\"} 1\n"), simple, text("b{job=\"1\",job=\"2\"} 1\n"))
	f("invalid UTF-8", "", simple, text("a{x=\"\xff\"} 1\n"), simple)
	f("labels that are there but empty", "honor_labels = true", text("a{job=\"\",x=\"\"} 1\n"), text("a{job=\"\",x=\"\"} 1\n"))

	// Failing.
	f("syntax errors", "", simple, simple, simple, broken, broken, simple, simple, simple, broken, text("!\n"), simple)
	f("error at the start", "", simple, text("7&-\n"), simple)
	f("target down", "", simple, answer{status: 503}, answer{status: 404}, simple, answer{status: 500}, simple, simple)
	f("down after a layout", "", simple, simple, simple, answer{status: 500}, two, fewer, fewer, fewer, answer{hang: true}, answer{status: 500}, fewer, text("b 1\n"))
	f("target hangs", "", simple, answer{hang: true}, simple, simple)
	f("connection breaks", "", simple, simple, simple, func() answer { a := simple; a.reset = true; return a }(), simple)
	f("no metrics", "", simple, answer{contentType: textType, body: "x"}, simple)
	zipped := simple
	zipped.gzip = true
	garbled := func(garble func(b []byte) []byte) answer { a := zipped; a.garble = garble; return a }
	f("bad gzip", "", zipped, zipped,
		garbled(func(b []byte) []byte { return b[:len(b)/2] }), zipped, // half of the body
		garbled(func(b []byte) []byte { return b[:len(b)-8] }), zipped, // without checksum
		garbled(func(b []byte) []byte { b[len(b)-6]++; return b }), zipped, // with a wrong checksum
		garbled(func(b []byte) []byte { b[0]++; return b }), zipped, // no gzip header
		garbled(func([]byte) []byte { return nil }), zipped, simple,
		garbled(func(b []byte) []byte { return append(b, b...) }), zipped) // two members, which gzip allows
	f("no answer", "", simple, answer{silent: true}, answer{silent: true}, simple)
	f("wrong content types", "", simple, answer{contentType: "application/json", body: simple.body}, answer{contentType: "", body: simple.body}, answer{contentType: "text/html;;", body: "<html>"}, simple)
	f("no fallback", `scrape_fallback_protocol = ""`, simple, answer{contentType: "application/json", body: simple.body}, answer{contentType: "", body: simple.body}, simple)
	f("redirects", "", simple, answer{to: "/elsewhere"}, simple)
	f("redirects not followed", "follow_redirects = false", simple, answer{to: "/elsewhere"}, simple)

	// Duplicates and equal series.
	f("lines repeated", "", text("a 1\nb 2\na 3\n"), text("a 1\nb 2\na 3\n"), text("a 2\nb 3\na 4\n"), text("a 2\nb 3\n"), text("b 1\n"))
	f("equal labels, other text", "", text("a{x=\"1\",y=\"2\"} 1\na{y=\"2\",x=\"1\"} 2\n"), text("a{x=\"1\",y=\"2\"} 1\na{y=\"2\",x=\"1\"} 2\n"), text("a{y=\"2\",x=\"1\"} 2\n"), text("a{x=\"1\",y=\"2\"} 2\n"), text("b 2\n"))
	f("bucket boundaries", "", text("# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"1.0\"} 1\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n# TYPE s summary\ns{quantile=\"0.50\"} 1\n# TYPE g gauge\ng{le=\"1\"} 1\n"),
		text("# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"1.0\"} 1\nh_bucket{le=\"2\"} 5\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n# TYPE s summary\ns{quantile=\"0.50\"} 1\ns{quantile=\"1\"} 1\n# TYPE g gauge\ng{le=\"1\"} 1\ng{le=\"2\"} 1\n"))
	f("repeated with timestamps", "", text("a 1 1000\na 2 2000\nb 1\n"), text("a 1 1000\na 2 2000\nb 1\n"), text("a 1 1000\na 2\nb 1\n"))

	again := text("a 1 1000\na 2 2000\nb 1\nb 2\n")
	f("repeated, from a layout", "", again, again, again, text(again.body+"c 1\n"), text("c 1\n"+again.body))

	// Timestamps.
	stamped := text("a 1 946684700000\nb 2\nc 3 946684700001\n")
	stamped2 := text("a 1 946684700005\nb 2\nc 3 946684700006\n")
	future := text("a 1 946684700005\nb 2\nc 3 9466847000069\n")
	f("timestamps", "", stamped, stamped2, stamped, stamped2, text("b 1\n"), text("c 3\n"), future, future, stamped, stamped2, stamped)
	f("future, from a layout", "track_timestamps_staleness = true", stamped, stamped2, future, stamped, stamped2, text("b 1\n"))
	f("timestamps tracked", "track_timestamps_staleness = true", stamped, stamped2, stamped, text("b 1\n"), text("c 3\n"), future, stamped)
	f("timestamps not honoured", "honor_timestamps = false", stamped, stamped2, stamped, text("b 1\n"), text("c 3\n"), future, future, stamped, text("a 1 946684700000\nb 2\na 3 946684700001\n"))
	f("timestamps come and go", "", stamped, stamped, stamped, text("a 1\nb 2 946684700000\nc 3\n"), stamped, text("a 1 -5\nb 2\nc 3\n"), stamped, text("a 1 99999999999999999999\n"), stamped, text("a 1 1.5\nb 2\n"))
	f("OpenMetrics timestamps", "", om("a 1 946684700.5\nb 2\n"), om("a 1 946684701.5\nb 2\n"), om("a 1 946684702\nb 2\n"), om("a 1 NaN\nb 2\n"), om("a 1 9e99\nb 2\n"), om("a 1 946684702\nb 2\n"))

	// OpenMetrics.
	ex := func(v string) answer {
		return om("# TYPE h histogram\n# UNIT h_seconds seconds\n# HELP h_seconds x\nh_bucket{le=\"1\"} " + v + " # {id=\"" + v + "\"} 0.5\nh_bucket{le=\"2\"} 3\nh_bucket{le=\"5\"} 3\nh_bucket{le=\"7\"} 3\nh_bucket{le=\"+Inf\"} " + v + " # {id=\"x\",b=\"y\"} 4 946684700.1\nh_sum 1\nh_count 1\nc 1\nd 2\n")
	}
	f("exemplars", "", ex("1"), ex("2"), ex("3"), ex("4"), om("h_bucket{le=\"1\"} 1 # {} 1\nh_bucket{le=\"1\"} 1 # {} 1\n"), ex("5"), ex("6"), om("a 1 # {x=\"1\"} NaN 1e99\n"), ex("7"))
	f("without EOF", "", om("a 1\n"), om("a 1\n"), answer{contentType: omType, body: "a 1\n"}, answer{contentType: omType, body: "a 1\n# EOF"}, om("a 1\n"), answer{contentType: omType, body: "a 1\n# EOF\nb 2\n"}, om("a 1\n"))
	f("OpenMetrics lexer leniency", "", om("a 1\nb 2\n"), om("a 1\nb 2\n"), om("a 1\nb 2\n"), om("a 1  \nb 2\n"), om("a 1\t\nb 2\n"), om("a 1 # x\nb 2\n"), om("a  1\nb 2\n"), om("a 1 #\nb 2\n"), om("a 1\nb 2\n"), om("a 1 2 3\nb 2\n"))
	f("created", "", om("# TYPE a counter\na_total 1\na_created 946684700.1\n"), om("# TYPE a counter\na_total 1\na_created 946684700.1\n"))
	counted := func(v, st string) answer {
		return om("# TYPE a counter\na_total{x=\"1\"} " + v + " # {id=\"" + v + "\"} 1\na_created{x=\"1\"} " + st +
			"\n# TYPE g gauge\ng " + v + "\ng_created 5\n# TYPE h histogram\nh_bucket{le=\"1\"} " + v + "\nh_bucket{le=\"+Inf\"} 9\nh_sum 1\nh_count 9\nh_created " + st +
			"\n# TYPE s summary\ns{quantile=\"0.5\"} 1\ns_sum 1\ns_count 1\ns_created " + st + "\n# TYPE b counter\nb_total 1\nc 1\n")
	}
	f("start timestamps", "start_timestamp_zero_ingestion = true", counted("1", "946684700.1"), counted("2", "946684700.1"), counted("0", "946684800.5"),
		corpus(t, "created.om.txt"), corpus(t, "created.om.txt"), simple, simple, simple, counted("0", "x"), counted("1", "946684700.1"))
	f("content type changes", "", simple, simple, simple, om("# HELP a Some help.\n# TYPE a counter\na_total{x=\"1\"} 1\nb 3\n"), simple, simple)

	// Metadata.
	f("metadata changes", "", simple, simple, simple, text("# HELP a Other.\n# TYPE a gauge\na{x=\"1\"} 1\na{x=\"2\"} 2\nb 3\n"), text("a{x=\"1\"} 1\na{x=\"2\"} 2\nb 3\n"), text("# HELP b x\na{x=\"1\"} 1\nb 3\n"), simple)
	f("metadata late", "", text("# HELP a x\na 1\n# TYPE a counter\na_total 1\nb 1\na_total{x=\"1\"} 1\n"), text("# HELP a x\na 1\n# TYPE a counter\na_total 1\nb 1\na_total{x=\"1\"} 1\n"), text("# HELP a x\na 1\n# TYPE a counter\na_total 1\nb 1\na_total{x=\"1\"} 1\n"), text("# HELP a x\na 1\n# TYPE a counter\na_total 1\nb 1\na_total{x=\"1\"} 1\n"))
	f("metadata said twice", "", text("# HELP a x\na 1\n# HELP a y\na{x=\"1\"} 1\n"), text("# HELP a x\na 1\n# HELP a y\na{x=\"1\"} 1\n"), text("# HELP a x\na 1\n# HELP a y\na{x=\"1\"} 1\n"))
	f("types", "", text("# TYPE a counter\na_total 1\na 1\na_x 1\n# TYPE b_total counter\nb_total 1\n# TYPE h histogram\nh_count 1\nh_sum 1\nh_bucket{le=\"1\"} 1\nh 1\n# TYPE s summary\ns_sum 1\ns_count 1\ns_bucket 1\n# TYPE i_info gauge\ni_info 1\n"))
	f("OpenMetrics types", "", om("# TYPE i info\ni_info{a=\"b\"} 1\n# TYPE g gaugehistogram\ng_gcount 1\ng_gsum 2\ng_bucket{le=\"1\"} 1\ng_count 1\n# TYPE s stateset\ns{s=\"a\"} 1\n# TYPE u unknown\nu 1\n"))

	// Labels.
	exposed := text("a{job=\"x\",instance=\"y\",exported_job=\"z\"} 1\nb{exported_job=\"z\",exported_exported_job=\"z\"} 2\nc 3\n")
	f("conflicting labels", "", exposed, exposed)
	f("conflicting labels honoured", "honor_labels = true", exposed, exposed)
	f("target labels", `targets = [{ __address__ = "target.test:80", job = "j", instance = "i", exported_job = "e", env = "prod", __meta_x = "y", __own = "z" }]`, exposed, simple)
	f("overrides by target labels", `targets = [{ __address__ = "target.test:80", __scheme__ = "http", __metrics_path__ = "/own", __param_x = "y", __scrape_timeout__ = "3s" }]`+"\nextra_metrics = true\nparams = { \"x\" = [\"a\", \"b\"], \"z\" = [\"c\"] }", simple, answer{hang: true}, simple)
	f("job name", `job_name = "named"`, simple)

	// Limits.
	f("sample_limit", "sample_limit = 2\nextra_metrics = true", fewer, fewer, fewer, simple, fewer, fewer, simple, simple, fewer)
	f("sample_limit met", "sample_limit = 3", simple, simple, simple, simple, text("a 1\na 2\nb 1\nb 2\nc 1\nc 2\n"), text("a 1\nb 1\nc 1\nd 1\nd 2\n"), simple)
	f("sample_limit and the future", "sample_limit = 3", future, future, text(future.body+"d 1\n"), future)
	f("body_size_limit", fmt.Sprintf("body_size_limit = %d\nextra_metrics = true", len(simple.body)), fewer, simple, fewer)
	f("label_limit", "label_limit = 3", text("a 1\n"), simple, text("a{x=\"1\",y=\"2\"} 1\n"), simple)
	f("label_name_length_limit", "label_name_length_limit = 8", text("a 1\n"), text("a{abcdefghi=\"1\"} 1\n"), text("a 1\n"))
	f("label_value_length_limit", "label_value_length_limit = 30", text("a 1\n"), text("a{b=\""+strings.Repeat("x", 31)+"\"} 1\n"), text("a 1\n"))
	f("target_limit", "target_limit = 1", simple, simple)
	f("target_limit exceeded", "target_limit = 1\nextra_metrics = true\n"+`targets = [{ __address__ = "target.test:80" }, { __address__ = "other.test:80" }]`, simple)
	f("no compression", "enable_compression = false", simple)
	f("protocols", `scrape_protocols = ["PrometheusText0.0.4", "OpenMetricsText0.0.1"]`, simple)
	f("escaping", "metric_name_validation_scheme = \"utf8\"\nmetric_name_escaping_scheme = \"dots\"", simple)
	f("type and unit labels", "enable_type_and_unit_labels = true", simple, simple, simple, om("# TYPE a_seconds counter\n# UNIT a_seconds seconds\na_seconds_total 1\n"), simple)
}

// valueBodies returns a body for each value, with lines that stay the same around
// it.
func valueBodies(values []string) []answer {
	as := []answer{text("a 1\nb 2\nc 3\n"), text("a 1\nb 2\nc 3\n"), text("a 1\nb 2\nc 3\n")}
	for _, v := range values {
		as = append(as, text("a 1\nb "+v+"\nc 3\n"), text("a 1\nb 2\nc 3\n"), text("a 1\nb 2\nc 3\n"))
	}
	return as
}

// gathered returns the protobuf output of Prometheus's client library.
func gathered(t *testing.T, observations int) answer {
	t.Helper()
	r := prometheus.NewRegistry()
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "request_seconds", Help: "Time.", Buckets: []float64{1, 2, 5},
		NativeHistogramBucketFactor: 1.05, NativeHistogramMaxExemplars: 3,
	}, []string{"code"})
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "requests_total", Help: "Requests."})
	s := prometheus.NewSummary(prometheus.SummaryOpts{Name: "sizes", Objectives: map[float64]float64{0.5: 0.1}})
	r.MustRegister(h, c, s)
	for i := range observations {
		h.WithLabelValues("200").Observe(float64(i) / 3)
		h.WithLabelValues("500").(prometheus.ExemplarObserver).ObserveWithExemplar(float64(i), prometheus.Labels{"id": fmt.Sprint(i)})
		c.Inc()
		s.Observe(float64(i))
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, f := range families {
		for i, m := range f.Metric { // start times are those of the clock
			at := timestamppb.New(time.UnixMilli(946684000123 + int64(i)))
			if m.Histogram != nil {
				m.Histogram.CreatedTimestamp = at
			}
			if m.Summary != nil {
				m.Summary.CreatedTimestamp = at
			}
			if m.Counter != nil {
				m.Counter.CreatedTimestamp = at
			}
		}
		data, err := proto.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(binary.AppendUvarint(nil, uint64(len(data))))
		b.Write(data)
	}
	return answer{contentType: protoType, body: b.String()}
}

// renamed replaces the values of a label in a protobuf body by others of the same
// length.
func renamed(a answer, from, to string) answer {
	a.body = strings.ReplaceAll(a.body, from, to)
	return a
}

func TestProtobuf(t *testing.T) {
	few, many := gathered(t, 5), gathered(t, 100)
	f := func(name, args string, answers ...answer) {
		t.Helper()
		t.Run(name, func(t *testing.T) { compare(t, args, answers...) })
	}
	f("classic only", "", few, many, few)
	f("churn", "scrape_native_histograms = true", few, renamed(few, "200", "201"), renamed(many, "200", "202"), renamed(many, "500", "501"), few, many)
	f("native", "scrape_native_histograms = true", few, many, few, text("a 1\n"), few)
	f("native and classic", "scrape_native_histograms = true\nscrape_classic_histograms = true", few, many)
	f("converted", "convert_classic_histograms_to_nhcb = true", few, many, corpus(t, "histogram.om.txt"), corpus(t, "alltypes.txt"), corpus(t, "alltypes.txt"))
	f("bucket limit", "scrape_native_histograms = true\nnative_histogram_bucket_limit = 4", few, many)
	f("bucket limit for custom buckets", "convert_classic_histograms_to_nhcb = true\nnative_histogram_bucket_limit = 2", few, many)
	f("bucket factor", "scrape_native_histograms = true\nnative_histogram_min_bucket_factor = 1.5", few, many)
	f("asked for by labels", `targets = [{ __address__ = "target.test:80", __scrape_native_histograms__ = "true", __always_scrape_classic_histograms__ = "true" }]`, few, many)
	f("negotiated", "enable_protobuf_negotiation = true", few)
	f("start timestamps", "start_timestamp_zero_ingestion = true\nscrape_native_histograms = true", few, many, text("a 1\n"), few)
	f("start timestamps, classic", "start_timestamp_zero_ingestion = true", few, many, few)
	f("start timestamps, converted", "start_timestamp_zero_ingestion = true\nconvert_classic_histograms_to_nhcb = true", few, many, corpus(t, "created.om.txt"), corpus(t, "histogram.om.txt"))
	f("cut off", "scrape_native_histograms = true", few, answer{contentType: protoType, body: many.body[:len(many.body)/2]}, few)
}
