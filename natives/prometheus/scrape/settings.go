package scrape

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"

	commonconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/util/logging"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/httpclient"
	"github.com/weir-run/weir/engine/service"
)

// settings are the arguments, prepared for the targets. They are immutable. A
// target uses the current settings for each scrape.
type settings struct {
	args  *Arguments // without targets
	files string     // digest of the files that the client reads
	cfg   *config.ScrapeConfig
	out   *flow.Output

	client    *http.Client
	accept    string
	encoding  string
	userAgent string
	failures  *slog.Logger // nil without scrape_failure_log_file
	file      *logging.JSONFileLogger

	maxSchema int32
}

// newSettings returns before, which may be nil, if only the targets changed, as
// with every discovery. Otherwise, it keeps at least the client and its
// connections if possible.
func newSettings(o component.Options, a *Arguments, http service.HTTPData, before *settings) (*settings, error) {
	args := *a
	args.Targets = nil
	files := httpclient.Digest(a.Client.Files())
	if before != nil && before.files == files && before.same(&args) {
		return before, nil
	}
	s := &settings{args: &args, files: files, cfg: a.config(o.ID), out: flow.NewOutput(o.Stats, a.ForwardTo), userAgent: o.UserAgent}
	escaping, err := config.ToEscapingScheme(s.cfg.MetricNameEscapingScheme, s.cfg.MetricNameValidationScheme)
	if err != nil {
		return nil, fmt.Errorf("cannot use metric_name_escaping_scheme: %w", err)
	}
	s.accept = acceptHeader(s.cfg.ScrapeProtocols, escaping)
	s.encoding = "identity"
	if a.EnableCompression {
		s.encoding = "gzip"
	}
	s.maxSchema = maxSchema(a.NativeHistogramMinBucketFactor)
	if before != nil && before.files == files && reflect.DeepEqual(before.args.Client, a.Client) {
		s.client = before.client
		return s, nil
	}
	dial := dialer(http)
	s.client, err = httpclient.NewClient(&a.Client, commonconfig.WithDialContextFunc(dial))
	if err != nil {
		return nil, err
	}
	a.Client.Plain(s.client, dial)
	return s, nil
}

// same reports whether a has the same settings as s. A failure log is never the
// same, because it may have to be opened again.
func (s *settings) same(a *Arguments) bool {
	x, y := *s.args, *a
	x.ForwardTo, y.ForwardTo = nil, nil // compare which receivers they are, not their contents
	return a.ScrapeFailureLogFile == "" && slices.Equal(s.args.ForwardTo, a.ForwardTo) && reflect.DeepEqual(x, y)
}

// open opens the failure log if one is configured, or takes it from the previous
// settings, which may be nil. If this fails, scrapes continue without it.
func (s *settings) open(before *settings) error {
	if before != nil && before.file != nil && before.args.ScrapeFailureLogFile == s.args.ScrapeFailureLogFile {
		s.file = before.file
		s.failures = slog.New(s.file).With("job_name", s.cfg.JobName)
		return nil
	}
	file, err := logging.NewJSONFileLogger(s.args.ScrapeFailureLogFile)
	if err != nil {
		return fmt.Errorf("cannot open scrape_failure_log_file %q: %w", s.args.ScrapeFailureLogFile, err)
	}
	if file != nil {
		s.file = file
		s.failures = slog.New(file).With("job_name", s.cfg.JobName)
	}
	return nil
}

// close releases the resources of the settings, except those that next, which may
// be nil, uses as well. No target may use the settings any more.
func (s *settings) close(next *settings) {
	if next == nil || next.client != s.client {
		s.client.CloseIdleConnections()
	}
	if s.file != nil && (next == nil || next.file != s.file) {
		s.file.Close()
	}
}

// dialer reaches weir's own exporters in memory and all other addresses over the
// network.
func dialer(http service.HTTPData) commonconfig.DialContextFunc {
	var tcp net.Dialer
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if http.DialContext != nil && address == http.MemoryAddress {
			return http.DialContext(ctx, network, address)
		}
		return tcp.DialContext(ctx, network, address)
	}
}

// samplesAs reports whether a body results in the same series with both settings.
func (s *settings) samplesAs(o *settings) bool {
	neutral := func(s *settings) config.ScrapeConfig {
		c := *s.cfg
		c.ScrapeInterval, c.ScrapeTimeout, c.SampleLimit, c.TargetLimit, c.BodySizeLimit = 0, 0, 0, 0, 0
		return c
	}
	return s.args.EnableTypeAndUnitLabels == o.args.EnableTypeAndUnitLabels &&
		s.args.HonorMetadata == o.args.HonorMetadata &&
		s.args.StartTimestampZeroIngestion == o.args.StartTimestampZeroIngestion &&
		reflect.DeepEqual(neutral(s), neutral(o))
}

// acceptHeader returns an Accept header for the protocols in their order.
//
// Format: https://www.rfc-editor.org/rfc/rfc9110.html#name-accept
func acceptHeader(protocols []config.ScrapeProtocol, scheme model.EscapingScheme) string {
	var b strings.Builder
	weight := len(config.ScrapeProtocolsHeaders) + 1
	for _, p := range protocols {
		b.WriteString(config.ScrapeProtocolsHeaders[p])
		// Older versions of the formats have no escaping.
		if p == config.PrometheusText1_0_0 || p == config.OpenMetricsText1_0_0 {
			fmt.Fprintf(&b, ";%s=%s", model.EscapingKey, scheme)
		}
		fmt.Fprintf(&b, ";q=0.%d,", weight)
		weight--
	}
	fmt.Fprintf(&b, "*/*;q=0.%d", weight)
	return b.String()
}

// maxSchema returns the finest histogram schema whose buckets grow at least by
// factor.
func maxSchema(factor float64) int32 {
	if factor <= 1 {
		return histogram.ExponentialSchemaMax
	}
	floor := math.Floor(-math.Log2(math.Log2(factor)))
	return int32(min(max(floor, float64(histogram.ExponentialSchemaMin)), float64(histogram.ExponentialSchemaMax)))
}
