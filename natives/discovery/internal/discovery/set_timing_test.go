package discovery_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/prometheus/common/model"
	sd "github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/targetgroup"

	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/natives/discovery/internal/discovery"
)

// pods returns the groups of n pods with 30 labels each, with perGroup pods per
// group.
func pods(n, perGroup, version int) (groups []*targetgroup.Group) {
	for i := range n {
		if i%perGroup == 0 {
			groups = append(groups, &targetgroup.Group{Source: fmt.Sprint("pod/", i/perGroup), Labels: model.LabelSet{"namespace": "shop"}})
		}
		l := model.LabelSet{model.AddressLabel: model.LabelValue(fmt.Sprintf("10.%d.%d.%d:9100", i>>16, i>>8&255, i&255))}
		for j := range 28 {
			l[model.LabelName(fmt.Sprint("__meta_kubernetes_pod_label_", j))] = model.LabelValue(fmt.Sprint(i % (j + 1)))
		}
		if i == version {
			l["version"] = model.LabelValue(fmt.Sprint(version))
		}
		g := groups[len(groups)-1]
		g.Targets = append(g.Targets, l)
	}
	return groups
}

// BenchmarkRefresh measures an update with 100,000 targets, one of which changed,
// from its arrival to the export.
func BenchmarkRefresh(b *testing.B) {
	const n = 100_000
	for _, perGroup := range []int{n, 10} {
		b.Run(fmt.Sprint("per_group=", perGroup), func(b *testing.B) {
			updates := [][]*targetgroup.Group{pods(n, perGroup, 1), pods(n, perGroup, 2)}
			next := make(chan []*targetgroup.Group)
			node := componenttest.New(b, "x")
			c, err := discovery.New(node.Options(), discovery.Kind{Stream: true, Config: func(args any) (sd.Config, error) { return args.(script), nil }},
				script{run: func(ctx context.Context, _ *slog.Logger, up chan<- []*targetgroup.Group) {
					for {
						select {
						case u := <-next:
							select {
							case up <- u:
							case <-ctx.Done():
							}
						case <-ctx.Done():
							return
						}
					}
				}}, nil)
			if err != nil {
				b.Fatal(err)
			}
			node.Run(b, c)
			send := func(i int) {
				node.Clock.Advance(1e9)
				next <- updates[i%2]
				next <- nil // when this is received, the previous update has been processed
				next <- nil // when this is received, the previous value was received
			}
			send(1)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				send(i)
			}
		})
	}
}
