package scrape

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/scrape"

	"github.com/weir-run/weir/engine/component"
)

// firstWithin is the time after the start within which the first firstOf targets
// are scraped for the first time. With more targets, firstOf targets are scraped
// in each such period.
const (
	firstWithin = time.Second
	firstOf     = 5000
)

// target is a target as described by its labels. It is immutable.
type target struct {
	key      string // labels and URL: targets with equal keys are the same
	url      string
	redacted string // the URL without the password
	tags     []labels.Label
	socket   string // the Unix socket to scrape through; "" if there is none
	interval time.Duration
	timeout  time.Duration
	hash     uint64

	native, classic, nhcb bool
}

// maxTargets is the maximum number of targets of a component, unless target_limit
// allows more. A discovery that returns a million targets is a mistake, and each
// costs 10 KB.
const maxTargets = 100_000

// maxInvalid is the maximum number of reasons that are kept for targets that
// cannot be scraped.
const maxInvalid = 20

// targets are the targets of a list of label maps.
type targets struct {
	all     []*target // without duplicates
	made    map[uintptr]made
	invalid []error // the first reasons why targets cannot be scraped
	broken  int     // number of targets that cannot be scraped
	surplus int     // number of maps that were ignored because there are too many
	// limitErr makes every scrape fail, because there are too many targets.
	limitErr error
}

// made is the result of a label map: usually one target.
type made struct {
	from map[string]string // retains the map, so that its address is not reused
	to   []*target
	err  error
}

// newTargets creates targets from label maps, at most most of them. known are the
// results of an earlier call with the same cfg: the same maps give the same
// targets, and these are preferred if there are too many.
func newTargets(maps []map[string]string, cfg *config.ScrapeConfig, known map[uintptr]made, most int) *targets {
	ts := &targets{made: make(map[uintptr]made, min(len(maps), most))}
	seen := make(map[string]bool, min(len(maps), most))
	b := labels.NewBuilder(labels.EmptyLabels())
	add := func(i int, m made) {
		ts.made[reflect.ValueOf(maps[i]).Pointer()] = m
		if m.err != nil {
			if ts.broken++; len(ts.invalid) < maxInvalid {
				ts.invalid = append(ts.invalid, fmt.Errorf("target %d (%s): %w", i+1, maps[i][model.AddressLabel], m.err))
			}
		}
		for _, t := range m.to {
			if !seen[t.key] {
				seen[t.key] = true
				ts.all = append(ts.all, t)
			}
		}
	}
	var fresh []int
	for i := range maps {
		if m, ok := known[reflect.ValueOf(maps[i]).Pointer()]; ok && len(ts.all) < most {
			add(i, m)
		} else {
			fresh = append(fresh, i)
		}
	}
	for n, i := range fresh {
		if len(ts.all) >= most || len(ts.made) >= 2*most {
			ts.surplus = len(fresh) - n
			break
		}
		add(i, makeTargets(maps[i], cfg, b))
	}
	return ts
}

func makeTargets(m map[string]string, cfg *config.ScrapeConfig, b *labels.Builder) made {
	set := make(model.LabelSet, len(m))
	for n, v := range m {
		set[model.LabelName(n)] = model.LabelValue(v)
	}
	ts, failed := scrape.TargetsFromGroup(&targetgroup.Group{Source: "targets", Targets: []model.LabelSet{set}}, cfg, nil, b)
	if len(failed) > 0 {
		return made{from: m, err: errors.Unwrap(failed[0])}
	}
	out := made{from: m}
	for _, st := range ts {
		t, err := newTarget(st, cfg)
		if err != nil {
			return made{from: m, err: err}
		}
		out.to = append(out.to, t)
	}
	return out
}

func newTarget(st *scrape.Target, cfg *config.ScrapeConfig) (*target, error) {
	u := st.URL()
	t := &target{
		url: u.String(), redacted: component.HideURLs(u.String()),
		socket:  st.GetValue(scrape.UnixSocketLabel),
		native:  flag(st, "__scrape_native_histograms__", cfg.ScrapeNativeHistogramsEnabled()),
		classic: flag(st, "__always_scrape_classic_histograms__", cfg.AlwaysScrapeClassicHistogramsEnabled()),
		nhcb:    flag(st, nhcbLabel, cfg.ConvertClassicHistogramsToNHCBEnabled()),
	}
	if t.socket != "" {
		return nil, errors.New("the label __unix_socket__ is not supported yet")
	}
	var err error
	if t.interval, err = duration(st, model.ScrapeIntervalLabel); err != nil {
		return nil, err
	}
	if t.timeout, err = duration(st, model.ScrapeTimeoutLabel); err != nil {
		return nil, err
	}
	key := []byte(t.url)
	st.LabelsRange(func(l labels.Label) {
		t.tags = append(t.tags, l)
		key = binary.AppendUvarint(append(key, 0), uint64(len(l.Name)))
		key = append(append(append(key, l.Name...), 0), l.Value...)
	})
	t.key, t.hash = string(key), xxhash.Sum64(key)
	return t, nil
}

// duration parses a label that PopulateLabels has checked.
func duration(st *scrape.Target, label string) (time.Duration, error) {
	d, err := model.ParseDuration(st.GetValue(label))
	if err != nil {
		return 0, fmt.Errorf("cannot use label %s: %w", label, err)
	}
	return time.Duration(d), nil
}

func flag(st *scrape.Target, label string, def bool) bool {
	if b, err := strconv.ParseBool(st.GetValue(label)); err == nil {
		return b
	}
	return def
}

// together is the distance between slots. Targets in the same slot are scraped
// after a single wake-up, which costs more than a scrape.
const together = 250 * time.Millisecond

// offset returns the offset of the target in a span of time. As in Prometheus, it
// is the same after a restart, so the hash has no seed; the hash is not used in a
// hash table.
func (t *target) offset(span time.Duration) time.Duration {
	d := time.Duration(t.hash % uint64(span))
	if span >= 4*together {
		d -= d % together
	}
	return d
}

// first returns the time of the first scrape of a target that starts now, one of
// several.
func (t *target) first(now time.Time, of int) time.Time {
	within := firstWithin * time.Duration(max(of/firstOf, 1))
	return now.Add(t.offset(min(t.interval, within)))
}

// slot returns the first slot of the target after the time after. Targets are
// spread over the interval and keep their slots across restarts.
func (t *target) slot(after time.Time) time.Time {
	wait := (int64(t.offset(t.interval)) - after.UnixNano()) % int64(t.interval)
	if wait <= 0 {
		wait += int64(t.interval)
	}
	return after.Add(time.Duration(wait))
}

func (t *target) parserOptions(s *settings) textparse.ParserOptions {
	return textparse.ParserOptions{
		EnableTypeAndUnitLabels:                 s.args.EnableTypeAndUnitLabels,
		IgnoreNativeHistograms:                  !t.native,
		ConvertClassicHistogramsToNHCB:          t.nhcb,
		KeepClassicOnClassicAndNativeHistograms: t.classic,
		OpenMetricsSkipSTSeries:                 s.args.StartTimestampZeroIngestion,
		FallbackContentType:                     s.cfg.ScrapeFallbackProtocol.HeaderMediaType(),
	}
}
