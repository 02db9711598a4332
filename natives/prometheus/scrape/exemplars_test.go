package scrape

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// exemplarBodies are the bodies of successive scrapes with exemplars.
func exemplarBodies(t *testing.T) []answer {
	long := strings.Repeat("é", 126)
	line := func(labels, rest string) answer {
		return om("# TYPE c counter\nc_total 1 # {" + labels + "} " + rest + "\nlater 1\n")
	}
	at := func(ms int64) *timestamppb.Timestamp { return timestamppb.New(time.UnixMilli(946684800000 + ms)) }
	exemplar := func(id string, v float64, ts *timestamppb.Timestamp) *dto.Exemplar {
		return &dto.Exemplar{Label: []*dto.LabelPair{{Name: new("id"), Value: &id}}, Value: &v, Timestamp: ts}
	}
	native := func(es ...*dto.Exemplar) answer {
		return withHistogram(t, integer(func(h *dto.Histogram) { h.Exemplars = es }))
	}
	odd := exemplar("a", 1, at(9000))
	odd.Label = append(odd.Label, &dto.LabelPair{Name: new("id"), Value: new("b")})
	return []answer{
		// Length of names and values, in characters, not bytes.
		line(`id="`+long+`"`, "1 1"), line(`id="`+long+`x"`, "1 2"), line(`ids="`+long+`"`, "1 3"),
		line(`a="1",id="`+long[:2*123]+`",b="2"`, "1 4"), line(`a="",id="`+long+`"`, "1 5"), line(``, "1 6"),
		// Order and duplicates.
		line(`id="1"`, "1 100"), line(`id="1"`, "1 100"), line(`id="1"`, "1 99"), line(`id="2"`, "1 99.5"), line(`id="2"`, "0.5 100"),
		line(`id="2"`, "2 100"), line(`id="1"`, "2 100"), line(`id="3"`, "2 100"), line(`id="3"`, "1 101"),
		line(`id="4"`, "1"), line(`id="4"`, "1"), line(`id="4"`, "2"), line(`id="5"`, "1 102"), line(`id="4"`, "1"),
		text("gone 1\n"), line(`id="4"`, "1"), answer{status: 500}, line(`id="4"`, "1"), line(`id="6"`, "1 1e11"), line(`id="7"`, "1"), line(`id="8"`, "NaN"), line(`id="8"`, "NaN"),
		// A scrape that fails keeps no exemplar.
		answer{contentType: omType, body: "d_total 1 # {id=\"1\"} 1 5\n!\n# EOF\n"}, om("d_total 1 # {id=\"2\"} 1 4\n"), om("d_total 1 # {id=\"1\"} 1 5\n"),
		// Several at a time, of a native histogram.
		native(exemplar("a", 1, at(2)), exemplar("b", 2, at(1)), exemplar("c", 3, at(1)), exemplar("d", 4, nil)),
		native(exemplar("a", 1, at(2)), exemplar("b", 2, at(1))), native(exemplar("e", 0.5, at(2)), exemplar("f", 9, at(3)), exemplar(long+"x", 10, at(4))), native(odd, exemplar("g", 1, at(5))),
	}
}

// TestExemplars compares the exemplars that weir sends, scrape by scrape, with
// those that Prometheus keeps, and at the end with those in a real TSDB.
func TestExemplars(t *testing.T) {
	const args = "scrape_native_histograms = true"
	bodies := exemplarBodies(t)
	compare(t, args, bodies...)

	_, stored := inTSDB(t, args, bodies...)
	scrapes, comp := viaWeir(t, args, bodies...)
	var sent []string
	for _, scrape := range scrapes {
		for _, s := range scrape {
			for _, e := range s.Exemplars { // labels, value, whether it has a timestamp, and the timestamp
				labels, rest, _ := strings.Cut(e, "} ")
				sent = append(sent, fmt.Sprintf("%s %s} %s", s.Series, labels, strings.Fields(rest)[0]))
			}
		}
	}
	// The TSDB accepts duplicate names; the agent does not, and strict receivers
	// refuse the request.
	stored = slices.DeleteFunc(stored, func(e string) bool { return strings.Count(e, "id=") > 1 })
	slices.Sort(stored)
	slices.Sort(sent)
	if d := cmp.Diff(stored, sent); d != "" {
		t.Errorf("exemplars (-in Prometheus's TSDB +sent by weir)\n%s", d)
	}
	if len(sent) < 15 {
		t.Errorf("only %d exemplars were sent", len(sent))
	}
	for reason, want := range map[string]float64{"too_long": 4, "invalid_labels": 1, "out_of_order": 10} {
		if got := testutil.ToFloat64(comp.metrics.exemplarsDropped.WithLabelValues(reason)); got != want {
			t.Errorf("%v exemplars counted as %s, want %v", got, reason, want)
		}
	}
}
