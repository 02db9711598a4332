package scrape

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/alecthomas/units"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/httpclient"
)

// Arguments of prometheus.scrape.
type Arguments struct {
	// Targets to scrape: maps of labels. The label __address__ is required. __scheme__,
	// __metrics_path__, __param_<name>, __scrape_interval__ and __scrape_timeout__
	// override the arguments for one target.
	Targets []map[string]string `alloy:"targets,attr"`
	// Receivers to send the samples to.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`

	// Value of the label job for targets without one. Default: the component's ID.
	JobName string `alloy:"job_name,attr,optional"`
	// Whether a label in the scraped data takes precedence over a label of the target
	// with the same name. Otherwise it is renamed to exported_<name>.
	HonorLabels bool `alloy:"honor_labels,attr,optional"`
	// Whether timestamps in the scraped data are used.
	HonorTimestamps bool `alloy:"honor_timestamps,attr,optional"`
	// Whether series with their own timestamps get a staleness marker when they
	// disappear.
	TrackTimestampsStaleness bool `alloy:"track_timestamps_staleness,attr,optional"`
	// Query parameters of the request.
	Params map[string][]string `alloy:"params,attr,optional"`
	// Whether a histogram that also comes as a native histogram keeps its classic buckets.
	ScrapeClassicHistograms bool `alloy:"scrape_classic_histograms,attr,optional"`
	// Whether native histograms are scraped. If so, weir prefers protobuf.
	ScrapeNativeHistograms bool `alloy:"scrape_native_histograms,attr,optional"`
	// File to which failed requests are logged, one JSON object per line.
	ScrapeFailureLogFile string `alloy:"scrape_failure_log_file,attr,optional"`
	// Interval between two scrapes of a target.
	ScrapeInterval time.Duration `alloy:"scrape_interval,attr,optional"`
	// Timeout of a scrape, at most scrape_interval. Default: 10s, or scrape_interval if
	// that is shorter.
	ScrapeTimeout *time.Duration `alloy:"scrape_timeout,attr,optional"`
	// Formats to request, in order of preference. Default: OpenMetricsText1.0.0,
	// OpenMetricsText0.0.1, PrometheusText1.0.0, PrometheusText0.0.4; if
	// scrape_native_histograms is set, PrometheusProto comes first.
	ScrapeProtocols []string `alloy:"scrape_protocols,attr,optional"`
	// Format of a response whose Content-Type is missing or unknown; with "", such a
	// scrape fails.
	ScrapeFallbackProtocol string `alloy:"scrape_fallback_protocol,attr,optional"`
	// Path of the request.
	MetricsPath string `alloy:"metrics_path,attr,optional"`
	// Scheme of the request, http or https.
	Scheme string `alloy:"scheme,attr,optional"`
	// Maximum uncompressed size of a body, such as "10MB"; if it is reached, the scrape
	// fails. 0 means 256MiB. At most two bodies above 16MiB are read at a time.
	BodySizeLimit component.Size `alloy:"body_size_limit,attr,optional"`
	// Maximum number of samples; if there are more, the scrape fails. 0 is no limit.
	// weir logs a warning about targets with more than 100000 samples.
	SampleLimit uint `alloy:"sample_limit,attr,optional"`
	// Maximum number of targets; if there are more, every scrape fails. 0 is no limit.
	// Targets above both 100000 and target_limit are not scraped at all.
	TargetLimit uint `alloy:"target_limit,attr,optional"`
	// Maximum number of labels of a series; if there are more, the scrape fails. 0 is no
	// limit.
	LabelLimit uint `alloy:"label_limit,attr,optional"`
	// Maximum length of a label name in bytes; if a name is longer, the scrape fails. 0
	// is no limit.
	LabelNameLengthLimit uint `alloy:"label_name_length_limit,attr,optional"`
	// Maximum length of a label value in bytes; if a value is longer, the scrape fails.
	// 0 is no limit.
	LabelValueLengthLimit uint `alloy:"label_value_length_limit,attr,optional"`
	// Whether scrape_timeout_seconds, scrape_sample_limit and scrape_body_size_bytes are
	// reported in addition to up.
	ExtraMetrics bool `alloy:"extra_metrics,attr,optional"`
	// Deprecated: the same as scrape_native_histograms.
	EnableProtobufNegotiation bool `alloy:"enable_protobuf_negotiation,attr,optional"`
	// Names that are accepted, "legacy" or "utf8".
	MetricNameValidationScheme string `alloy:"metric_name_validation_scheme,attr,optional"`
	// Escaping of other names that weir requests from targets: "allow-utf-8",
	// "underscores", "dots" or "values". Default: "underscores" with legacy validation,
	// otherwise "allow-utf-8".
	MetricNameEscapingScheme string `alloy:"metric_name_escaping_scheme,attr,optional"`
	// Whether classic histograms are converted to native histograms with custom buckets.
	// prometheus.remote_write can send them only with remote write 2.0.
	ConvertClassicHistogramsToNHCB bool `alloy:"convert_classic_histograms_to_nhcb,attr,optional"`
	// Whether weir requests compressed responses.
	EnableCompression bool `alloy:"enable_compression,attr,optional"`
	// Maximum number of buckets of a native histogram. If there are more, its resolution
	// is reduced or the scrape fails. 0 is no limit.
	NativeHistogramBucketLimit uint `alloy:"native_histogram_bucket_limit,attr,optional"`
	// Minimum growth factor between the buckets of a native histogram; if it is smaller,
	// the resolution is reduced. 0 is no limit.
	NativeHistogramMinBucketFactor float64 `alloy:"native_histogram_min_bucket_factor,attr,optional"`
	// Whether series carry the metadata (type, help, unit) of their metric.
	HonorMetadata bool `alloy:"honor_metadata,attr,optional"`
	// Whether type and unit of a metric become the labels __type__ and __unit__.
	EnableTypeAndUnitLabels bool `alloy:"enable_type_and_unit_labels,attr,optional"`
	// Whether start timestamps are read from protobuf and from OpenMetrics. The _created
	// series of OpenMetrics are then no longer separate series. Start timestamps are
	// forwarded with the samples, and remote write 2.0 sends them. If a series started
	// after the previous scrape of its target, or for a new target after the component
	// started, it gets a sample of 0 at its start time.
	StartTimestampZeroIngestion bool `alloy:"start_timestamp_zero_ingestion,attr,optional"`

	Client httpclient.Arguments `alloy:",squash"`

	// Distribution of targets among several instances.
	Clustering Clustering `alloy:"clustering,block,optional"`
}

// Clustering configures whether targets are shared with other instances.
type Clustering struct {
	// Must be false: instances of weir do not distribute targets among themselves. The
	// error message for true shows the rules to use instead.
	Enabled bool `alloy:"enabled,attr"`
}

// noClustering is the error for clustering. It shows what to write instead.
const noClustering = `clustering: enabled = true is not supported: instances of weir do not distribute targets among themselves
Remove the block and let each instance keep its own part of the targets. For the
first of 3 instances, write in a discovery.relabel before this block (the second
has regex = "1", the third regex = "2"):
  rule {
    source_labels = ["__address__"]
    action        = "hashmod"
    modulus       = 3
    target_label  = "__tmp_instance"
  }
  rule {
    source_labels = ["__tmp_instance"]
    action        = "keep"
    regex         = "0"
  }`

// timeout returns the timeout of a request. As in Prometheus, but not in Alloy, a
// scrape interval shorter than the default timeout also shortens the timeout.
func (a *Arguments) timeout() time.Duration {
	if a.ScrapeTimeout == nil {
		return min(10*time.Second, a.ScrapeInterval)
	}
	return *a.ScrapeTimeout
}

// SetToDefault sets Alloy's defaults, except that metadata is kept: it is part of
// a series in weir, and scripts read it.
func (a *Arguments) SetToDefault() {
	*a = Arguments{
		HonorTimestamps:            true,
		HonorMetadata:              true,
		ScrapeInterval:             time.Minute,
		MetricsPath:                "/metrics",
		Scheme:                     "http",
		MetricNameValidationScheme: "legacy",
		ScrapeFallbackProtocol:     string(config.PrometheusText0_0_4),
		EnableCompression:          true,
	}
	a.Client.SetToDefault()
}

// Validate returns all errors in the arguments, joined.
func (a *Arguments) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if a.ScrapeInterval <= 0 {
		add("scrape_interval must be greater than 0")
	}
	if a.timeout() <= 0 && a.ScrapeInterval > 0 {
		add("scrape_timeout must be greater than 0")
	}
	if a.timeout() > a.ScrapeInterval {
		add("scrape_timeout (%s) must not be greater than scrape_interval (%s)", a.timeout(), a.ScrapeInterval)
	}
	if _, err := url.Parse(a.MetricsPath); err != nil {
		add("metrics_path: %w", err)
	}
	if a.Scheme != "http" && a.Scheme != "https" {
		add(`scheme must be "http" or "https", not %q`, a.Scheme)
	}
	seen := map[string]bool{}
	for _, p := range a.ScrapeProtocols {
		if err := checkProtocol(p); err != nil {
			add("scrape_protocols: %w", err)
		}
		if seen[p] {
			add("scrape_protocols: %s appears twice", p)
		}
		seen[p] = true
	}
	if a.ScrapeProtocols != nil && len(a.ScrapeProtocols) == 0 {
		add("scrape_protocols must not be empty")
	}
	if a.ScrapeProtocols != nil && a.EnableProtobufNegotiation {
		add("at most one of scrape_protocols and enable_protobuf_negotiation may be set")
	}
	if a.ScrapeProtocols != nil && a.ScrapeNativeHistograms && !seen[string(config.PrometheusProto)] {
		add("scrape_native_histograms needs PrometheusProto in scrape_protocols")
	}
	if a.ScrapeFallbackProtocol != "" {
		if err := checkProtocol(a.ScrapeFallbackProtocol); err != nil {
			add("scrape_fallback_protocol: %w", err)
		}
	}
	validation, ok := validationSchemes[a.MetricNameValidationScheme]
	if !ok {
		add(`metric_name_validation_scheme must be "legacy" or "utf8", not %q`, a.MetricNameValidationScheme)
	}
	switch a.MetricNameEscapingScheme {
	case "", model.EscapeUnderscores, model.EscapeDots, model.EscapeValues:
	case model.AllowUTF8:
		if ok && validation != model.UTF8Validation {
			add(`metric_name_escaping_scheme "allow-utf-8" needs metric_name_validation_scheme = "utf8"`)
		}
	default:
		add(`metric_name_escaping_scheme must be "allow-utf-8", "underscores", "dots" or "values", not %q`, a.MetricNameEscapingScheme)
	}
	if a.Clustering.Enabled {
		add("%s", noClustering)
	}
	return errors.Join(append(errs, a.Client.Validate())...)
}

// Makes implements component.Maker.
func (a *Arguments) Makes() map[component.Content]string {
	makes := a.ConvertClassicHistogramsToNHCB
	for _, t := range a.Targets {
		// A target's label overrides the argument.
		if v, err := strconv.ParseBool(t[nhcbLabel]); err == nil && v {
			makes = true
		}
	}
	if !makes {
		return nil
	}
	return map[component.Content]string{component.CustomBuckets: "convert_classic_histograms_to_nhcb"}
}

// nhcbLabel is the label by which a target overrides convert_classic_histograms_to_nhcb.
const nhcbLabel = "__convert_classic_histograms_to_nhcb__"

var validationSchemes = map[string]model.ValidationScheme{
	"legacy": model.LegacyValidation,
	"utf8":   model.UTF8Validation,
}

func checkProtocol(p string) error {
	if p == string(config.OpenMetricsText2_0_0) {
		return fmt.Errorf("%s is not supported yet", p)
	}
	if config.ScrapeProtocol(p).Validate() == nil {
		return nil
	}
	var known []string
	for k := range config.ScrapeProtocolsHeaders {
		if k != config.OpenMetricsText2_0_0 {
			known = append(known, string(k))
		}
	}
	slices.Sort(known)
	return fmt.Errorf("unknown protocol %q, known are %v", p, known)
}

// config returns the valid arguments as a Prometheus configuration, without the
// HTTP client. job is the default job name.
func (a *Arguments) config(job string) *config.ScrapeConfig {
	if a.JobName != "" {
		job = a.JobName
	}
	native := a.ScrapeNativeHistograms || a.EnableProtobufNegotiation
	c := &config.ScrapeConfig{
		JobName:                        job,
		HonorLabels:                    a.HonorLabels,
		HonorTimestamps:                a.HonorTimestamps,
		TrackTimestampsStaleness:       a.TrackTimestampsStaleness,
		Params:                         a.Params,
		ScrapeInterval:                 model.Duration(a.ScrapeInterval),
		ScrapeTimeout:                  model.Duration(a.timeout()),
		ScrapeFallbackProtocol:         config.ScrapeProtocol(a.ScrapeFallbackProtocol),
		ScrapeNativeHistograms:         &native,
		AlwaysScrapeClassicHistograms:  &a.ScrapeClassicHistograms,
		ConvertClassicHistogramsToNHCB: &a.ConvertClassicHistogramsToNHCB,
		MetricsPath:                    a.MetricsPath,
		Scheme:                         a.Scheme,
		EnableCompression:              a.EnableCompression,
		BodySizeLimit:                  units.Base2Bytes(a.BodySizeLimit),
		SampleLimit:                    a.SampleLimit,
		TargetLimit:                    a.TargetLimit,
		LabelLimit:                     a.LabelLimit,
		LabelNameLengthLimit:           a.LabelNameLengthLimit,
		LabelValueLengthLimit:          a.LabelValueLengthLimit,
		NativeHistogramBucketLimit:     a.NativeHistogramBucketLimit,
		NativeHistogramMinBucketFactor: a.NativeHistogramMinBucketFactor,
		MetricNameValidationScheme:     validationSchemes[a.MetricNameValidationScheme],
		MetricNameEscapingScheme:       a.MetricNameEscapingScheme,
		ExtraScrapeMetrics:             &a.ExtraMetrics,
	}
	switch {
	case len(a.ScrapeProtocols) > 0:
		for _, p := range a.ScrapeProtocols {
			c.ScrapeProtocols = append(c.ScrapeProtocols, config.ScrapeProtocol(p))
		}
	case native:
		c.ScrapeProtocols = config.DefaultProtoFirstScrapeProtocols
	default:
		c.ScrapeProtocols = config.DefaultScrapeProtocols
	}
	return c
}
