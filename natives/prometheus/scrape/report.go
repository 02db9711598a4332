package scrape

import (
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/weir-run/weir/engine/batch"
)

// reportRows is the maximum number of samples in a report.
const reportRows = 8

// report contains the report samples of a scrape. Names, metadata and values are
// those of Prometheus.
//
// Format:
// https://prometheus.io/docs/concepts/jobs_instances/#automatically-generated-labels-and-time-series
type report struct {
	up          bool
	seconds     float64
	scraped     int
	added       int
	seriesAdded int
	timeout     float64 // seconds
	sampleLimit uint
	bytes       int
}

var reported = [reportRows]struct {
	name string
	meta batch.Metadata
}{
	{"up", batch.Metadata{Unit: "targets", Help: "Health of the scrape target. 1 means the target is healthy, 0 if the scrape failed."}},
	{"scrape_duration_seconds", batch.Metadata{Unit: "seconds", Help: "Duration of the last scrape in seconds."}},
	{"scrape_samples_scraped", batch.Metadata{Unit: "samples", Help: "Number of samples last scraped."}},
	{"scrape_samples_post_metric_relabeling", batch.Metadata{Unit: "samples", Help: "Number of samples remaining after metric relabeling was applied."}},
	{"scrape_series_added", batch.Metadata{Unit: "series", Help: "Number of series in the last scrape."}},
	{"scrape_timeout_seconds", batch.Metadata{Unit: "seconds", Help: "The configured scrape timeout for a target."}},
	{"scrape_sample_limit", batch.Metadata{Unit: "samples", Help: "The configured sample limit for a target. Returns zero if there is no limit configured."}},
	{"scrape_body_size_bytes", batch.Metadata{Unit: "bytes", Help: "The uncompressed size of the last scrape response, if successful. Scrapes failing because body_size_limit is exceeded report -1, other scrape failures report 0."}},
}

// reportRowsFor returns the number of rows of the report under these settings.
func reportRowsFor(s *settings) int {
	if s.args.ExtraMetrics {
		return reportRows
	}
	return 5
}

// reportSeries creates the handles for the report of a target.
func reportSeries(tags []labels.Label, metadata bool) (hs [reportRows]*batch.Series) {
	for i, r := range reported {
		b := labels.NewBuilder(labels.FromStrings(model.MetricNameLabel, r.name))
		for _, l := range tags {
			// As in Prometheus, a label of the target such as exported_job is
			// removed.
			b.Del(model.ExportedLabelPrefix + l.Name)
			b.Set(l.Name, l.Value)
		}
		hs[i] = batch.FromLabels(b.Labels())
		if metadata {
			meta := r.meta
			meta.Type = model.MetricTypeGauge
			hs[i].SetMeta(&meta)
		}
	}
	return hs
}

func (r report) values() [reportRows]float64 {
	up := 0.0
	if r.up {
		up = 1
	}
	return [reportRows]float64{
		up, r.seconds, float64(r.scraped), float64(r.added), float64(r.seriesAdded),
		r.timeout, float64(r.sampleLimit), float64(r.bytes),
	}
}
