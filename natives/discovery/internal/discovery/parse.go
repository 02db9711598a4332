package discovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
)

// ParseJSON parses JSON in the format of Prometheus's file and HTTP service
// discovery. The labels of the groups are not nil; their sources are empty. It
// stops at the first target or group beyond MaxTargets, because decoded targets
// take many times the size of the text.
func ParseJSON(text []byte) (groups []*targetgroup.Group, err error) {
	defer func() {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("unexpected end of JSON input")
		}
	}()
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	first, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if first != json.Delim('[') {
		if first != nil { // Prometheus accepts null as an empty list
			return nil, errors.New("the text is not a JSON list of groups of targets")
		}
		return nil, ended(dec)
	}
	targets := 0
	for dec.More() {
		var g *struct {
			Targets []string       `json:"targets"`
			Labels  model.LabelSet `json:"labels"`
		}
		if err := dec.Decode(&g); err != nil {
			return nil, err
		}
		if g == nil {
			return nil, errors.New("nil target group item found")
		}
		if targets += len(g.Targets); targets > MaxTargets || len(groups) == MaxTargets {
			return nil, errTargets
		}
		group := &targetgroup.Group{Labels: g.Labels, Targets: make([]model.LabelSet, len(g.Targets))}
		if group.Labels == nil {
			group.Labels = model.LabelSet{}
		}
		for i, address := range g.Targets {
			group.Targets[i] = model.LabelSet{model.AddressLabel: model.LabelValue(address)}
		}
		groups = append(groups, group)
	}
	if _, err := dec.Token(); err != nil { // the closing bracket
		return nil, err
	}
	return groups, ended(dec)
}

// ended returns an error unless the text has ended.
func ended(dec *json.Decoder) error {
	if t, err := dec.Token(); err == nil {
		return fmt.Errorf("unexpected %v after the list of groups", t)
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
