package main

import (
	"io"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
)

// blocks returns the catalog of the blocks that are not components: those that
// create and import components, and those that configure weir itself.
func blocks() (component.Catalog, error) {
	rs := append(moduleBlocks(), remoteBlocks()...)
	known, err := newServices(port{}, "", io.Discard)
	if err != nil {
		return nil, err
	}
	for _, s := range known.all() {
		if d := s.Definition(); d.Block != "" {
			rs = append(rs, component.Registration{Name: d.Block, NewArgs: d.NewConfig, Doc: d.Doc, Unique: true})
		}
	}
	return component.NewList(rs...), nil
}

// inner maps blocks to the block whose manual describes them.
var inner = map[string]string{"argument": "declare", "export": "declare", "template": "foreach"}

// declareBlock, foreachBlock and the following types describe the blocks that
// engine/config reads. They exist for the manuals.
type declareBlock struct {
	Arguments []struct {
		Label    string `alloy:",label"`
		Optional bool   `alloy:"optional,attr,optional"`
		Default  any    `alloy:"default,attr,optional"`
		Comment  string `alloy:"comment,attr,optional"`
	} `alloy:"argument,block,optional"`
	Exports []struct {
		Label   string `alloy:",label"`
		Value   any    `alloy:"value,attr"`
		Comment string `alloy:"comment,attr,optional"`
	} `alloy:"export,block,optional"`
}

type foreachBlock struct {
	Collection    []any    `alloy:"collection,attr"`
	Var           string   `alloy:"var,attr"`
	ID            string   `alloy:"id,attr,optional"`
	HashStringID  bool     `alloy:"hash_string_id,attr,optional"`
	EnableMetrics bool     `alloy:"enable_metrics,attr,optional"`
	Template      struct{} `alloy:"template,block"`
}

type importFileBlock struct {
	Filename      string        `alloy:"filename,attr"`
	Detector      string        `alloy:"detector,attr,optional"`
	PollFrequency time.Duration `alloy:"poll_frequency,attr,optional"`
}

type importStringBlock struct {
	Content component.OptionalSecret `alloy:"content,attr"`
}

type importScriptsBlock struct {
	Path string `alloy:"path,attr"`
}

func moduleBlocks() []component.Registration {
	return []component.Registration{
		{
			Name:    "policy",
			NewArgs: func() any { return &config.PolicyArguments{} },
			Unique:  true,
			Doc: component.Doc{
				Summary: `Restricts what the config imports and what its blocks grant. A config that the policy does not allow is refused.

The block must be at the top level of the config, and its values must be known before anything runs. Files and folders in the folder of the config may always be imported, because anyone who can write there can change the config as well; require_signature applies to them too.`,
				Args: map[string]string{
					"sources":           `Patterns of sources that may be imported; * stands for any text. A local file or folder outside of the folder of the config has a source like file:///usr/share/weir/acme. The default allows all sources.`,
					"require_signature": "Public keys of minisign. Everything that an import block other than import.string imports must then be in a package that is signed with one of them and has not changed since. By default, signatures are not needed.",
					"deny_grants":       `Kinds of grants that no block may have: "http", "env", "read" and "exec".`,
				},
				Example: `
policy {
  sources     = ["oci://registry.corp/*", "file:///usr/share/weir/*"]
  deny_grants = ["exec"]
}`,
			},
		},
		{
			Name:    "declare",
			NewArgs: func() any { return &declareBlock{} },
			Doc: component.Doc{
				Summary: `Defines a component from blocks. Its label is the name of the component: declare "pipeline" makes blocks pipeline "x".

The blocks in a declare can refer only to its arguments, to each other, and to declares and imports around it. Arguments are the inputs and exports are the outputs; both may be receivers. A declare has no receiver of its own: export the receiver of a block in it.`,
				Args: map[string]string{
					"argument":          `An attribute of the component; the label is its name. In the declare, its value is argument.LABEL.value.`,
					"argument.optional": "Whether the argument may be omitted.",
					"argument.default":  "The value if it is omitted; null by default.",
					"argument.comment":  "A description.",
					"export":            "A value that other blocks can refer to by its label: pipeline.x.LABEL.",
					"export.value":      "The exported value; it may refer to blocks of the declare.",
					"export.comment":    "A description.",
				},
				Example: `
declare "pipeline" {
  argument "to" {
    comment = "Receivers of the remaining samples."
  }

  argument "zone" {
    optional = true
    default  = "edge"
  }

  prometheus.relabel "zone" {
    forward_to = argument.to.value

    rule {
      target_label = "zone"
      replacement  = argument.zone.value
    }
  }

  export "receiver" {
    value = prometheus.relabel.zone.receiver
  }
}

pipeline "north" {
  to   = [prometheus.echo.default.receiver]
  zone = "north"
}

prometheus.scrape "app" {
  targets    = [{ __address__ = "127.0.0.1:8080" }]
  forward_to = [pipeline.north.receiver]
}

prometheus.echo "default" { }`,
			},
		},
		{
			Name:    "foreach",
			NewArgs: func() any { return &foreachBlock{} },
			Doc: component.Doc{
				Summary: `Instantiates the blocks of its template once for each item of a collection.

The collection may be the export of a component and may change while weir runs: the blocks of items that stay are not changed. If changes arrive faster than blocks can be built, only the newest one is applied and the foreach is unhealthy. While more than 1,000 removed components have not stopped, the next change waits.`,
				Args: map[string]string{
					"collection":     "The items, up to 10,000.",
					"var":            "The name of the item in the template.",
					"id":             "The field that identifies an item, such as __address__ of a target. Without it, a changed item is a new item: the old blocks are stopped and new blocks are built.",
					"hash_string_id": "Whether blocks are named by a hash of an item that is a string, instead of by the string.",
					"enable_metrics": "Whether /metrics has the metrics of the template's components.",
					"template":       "The blocks to instantiate for each item.",
				},
				Example: `
discovery.file "sites" {
  files = ["/etc/weir/sites.json"]
}

foreach "sites" {
  collection = discovery.file.sites.targets
  var        = "site"
  id         = "__address__"

  template {
    prometheus.scrape "default" {
      targets    = [site]
      forward_to = [prometheus.echo.default.receiver]
    }
  }
}

prometheus.echo "default" { }`,
			},
		},
		{
			Name: "import.file",
			NewArgs: func() any {
				return &importFileBlock{Detector: "fsnotify", PollFrequency: time.Minute}
			},
			Doc: component.Doc{
				Summary: `Imports the declares of a file. The label is their namespace: a declare "pipeline" is used as LABEL.pipeline "x".

When the file is saved, only the nodes that differ are changed. If it contains a mistake, the running version stays active.`,
				Args: map[string]string{
					"filename":       "A file, or a directory of *.alloy files, with declare and import blocks. A relative path is relative to the file that contains it.",
					"detector":       `How changes are detected: "fsnotify", or "poll" to check every poll_frequency.`,
					"poll_frequency": `Interval between two checks, with detector = "poll".`,
				},
				Example: `
import.file "edge" {
  filename = "modules/edge.alloy"
}

edge.scrape "north" {
  targets    = [{ __address__ = "10.1.0.1:9100" }]
  forward_to = [prometheus.echo.default.receiver]
}

prometheus.echo "default" { }`,
			},
		},
		{
			Name:    "import.scripts",
			NewArgs: func() any { return &importScriptsBlock{} },
			Doc: component.Doc{
				Summary: `Imports the scripts of a folder. The label is their namespace: http/paths.lua in it is used as LABEL.http.paths "x", so two versions of a folder can run side by side.`,
				Args: map[string]string{
					"path": "The folder. A relative path is relative to the file that contains it.",
				},
				Example: `
import.scripts "v2" {
  path = "scripts-v2"
}

v2.http.paths "default" {
  forward_to = [prometheus.echo.default.receiver]
}

prometheus.echo "default" { }`,
			},
		},
		{
			Name:    "import.string",
			NewArgs: func() any { return &importStringBlock{} },
			Doc: component.Doc{
				Summary: `Imports the declares in a string, which may be the export of a component. The label is their namespace, as for import.file.`,
				Args: map[string]string{
					"content": "The text, with declare and import blocks.",
				},
				Example: `
remote.http "modules" {
  url = "https://config.example.com/edge.alloy"
}

import.string "edge" {
  content = remote.http.modules.content
}

edge.scrape "north" {
  targets    = [{ __address__ = "10.1.0.1:9100" }]
  forward_to = [prometheus.echo.default.receiver]
}

prometheus.echo "default" { }`,
			},
		},
	}
}
