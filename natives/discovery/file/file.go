// Package file is discovery.file: it reads targets from files in the format of
// Prometheus's file service discovery, JSON or YAML, and reads them again when
// they change.
//
// The targets are the same as in Prometheus, and a test compares them. The files
// are watched by engine/watch instead: Prometheus uses an inotify instance per
// discovery, of which Linux allows 128, reads files during a save, and does not
// detect that a directory in the path was replaced.
package file

import (
	"path/filepath"

	sd "github.com/prometheus/prometheus/discovery"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/natives/discovery/internal/discovery"
)

// Registration describes discovery.file.
func Registration() component.Registration {
	return component.Registration{
		Name:     "discovery.file",
		NewArgs:  func() any { a := new(Arguments); a.SetToDefault(); return a },
		Exports:  discovery.Exports{},
		External: true,
		Build: func(o component.Options, args any, previous component.Component) (component.Component, error) {
			k := new(known) // outlives the discoverers
			return discovery.New(o, discovery.Kind{
				Config: func(args any) (sd.Config, error) { return &config{args.(*Arguments), k}, nil },
				Files:  paths,
			}, args, previous)
		},
	}
}

func paths(args any) (paths []string) {
	for _, f := range args.(*Arguments).Files {
		if abs, err := filepath.Abs(f); err == nil {
			paths = append(paths, abs)
		}
	}
	return paths
}
