package main

import (
	"testing"
	"time"

	"github.com/google/pprof/profile"
)

// TestMergeProfiles: the profiles of nodes cover the same time.
func TestMergeProfiles(t *testing.T) {
	of := func(d time.Duration, samples int64) *profile.Profile {
		kind := &profile.ValueType{Type: "samples", Unit: "count"}
		at := &profile.Location{ID: 1}
		return &profile.Profile{
			SampleType: []*profile.ValueType{kind}, PeriodType: kind, DurationNanos: int64(d), Location: []*profile.Location{at},
			Sample: []*profile.Sample{{Location: []*profile.Location{at}, Value: []int64{samples}}},
		}
	}
	got, err := mergeProfiles([]*profile.Profile{of(time.Second, 3), of(2*time.Second, 4), of(time.Second, 5)})
	if err != nil {
		t.Fatal(err)
	}
	if got.DurationNanos != int64(2*time.Second) || len(got.Sample) != 1 || got.Sample[0].Value[0] != 12 {
		t.Errorf("got %s, want 2s and a sample with 12", got)
	}
}
