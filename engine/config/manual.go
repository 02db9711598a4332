package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Manual describes the config language, from its tables of operators and
// functions. Each example in it is evaluated, and each block loaded, by a test.
func Manual() string {
	var b strings.Builder
	b.WriteString(manualHead)
	for _, o := range operators {
		o.write(&b)
	}
	b.WriteString(manualPrecedence)
	for _, level := range precedence {
		fmt.Fprintf(&b, "  %s\n", strings.Join(level, "   "))
	}
	b.WriteString("\n")
	for _, x := range precedenceExamples {
		x.write(&b, 2)
	}
	b.WriteString(manualFunctions)
	for _, f := range functions {
		f.write(&b)
	}
	b.WriteString("\nOld names of functions still work; write the new ones:\n\n")
	for _, old := range slices.Sorted(maps.Keys(oldNames)) {
		fmt.Fprintf(&b, "  %-14s %s\n", old, oldNames[old])
	}
	b.WriteString(manualModules)
	return b.String()
}

const manualHead = `The config language of weir is that of Grafana Alloy. A config is a file, or a
directory whose *.alloy files are read as one config; their order does not matter.

BLOCKS AND ATTRIBUTES

A config consists of blocks. A block has a name, a label in quotes that tells it from
other blocks of the same name, and attributes and nested blocks in braces:

  prometheus.scrape "app" {
    targets         = [{ __address__ = "127.0.0.1:8080", job = "app" }]
    scrape_interval = "15s"
    forward_to      = [prometheus.remote_write.default.receiver]

    basic_auth {
      username      = "weir"
      password_file = "/etc/weir/password"
    }
  }

  prometheus.remote_write "default" {
    endpoint {
      url = "http://127.0.0.1:9090/api/v1/write"
    }
  }

Write each attribute on a line of its own; a block with a single attribute may be
written on one line. A label consists of letters, digits and _, and does not begin
with a digit. // begins a comment that ends with the line; /* and */ enclose one.

'weir components' lists all blocks, and 'weir components NAME' prints the attributes,
nested blocks and exports of one. 'weir check' finds the mistakes in a config,
'weir fmt -w' formats it, and 'weir graph' draws it.

REFERENCES

A component exports values under its name and label: the receiver of the block above
is prometheus.remote_write.default.receiver. A block that refers to an export depends
on the other block and is updated when the export changes. The order of blocks does
not matter, but they must not depend on each other in a cycle.

forward_to takes a list of receivers, and each of them gets all data. targets takes
what a discovery exports, or a list of maps: __address__ is where to scrape, and other
names are labels.

  prometheus.exporter.unix "host" { }

  discovery.dns "db" {
    names = ["db.example.com"]
    type  = "A"
    port  = 9187
  }

  prometheus.scrape "all" {
    targets = array.concat(
      prometheus.exporter.unix.host.targets,
      discovery.dns.db.targets,
    )
    forward_to = [prometheus.echo.default.receiver]
  }

  prometheus.echo "default" { }

VALUES

  text        "text", with escapes such as \n, \" and \\; or between backquotes, where
              a backslash is a backslash, which suits regular expressions
  number      12, 1.5, 1e6
  boolean     true, false
  null        null, which is nothing: an attribute that is not set
  list        [1, 2, 3]
  map         { team = "ops", "k8s.pod" = "x" }; names that are not only letters,
              digits and _ are written in quotes
  duration    a string: "500ms", "30s", "1h30m"
  size        a string: "512KiB", "10MiB", "1GiB"
  secret      a string where an attribute takes a secret, or the export of a component
              such as local.file with is_secret = true; it is never shown, and can be
              used only where an attribute takes a secret
  receiver    the export of a component that takes data

There are no conditions and no loops in expressions: choose a value with coalesce or
from a map, and make several blocks with foreach.

  local.file "token" {
    filename  = "/etc/weir/token"
    is_secret = true
  }

  prometheus.remote_write "cloud" {
    external_labels = {
      host = constants.hostname,
      zone = coalesce(sys.env("ZONE"), "unknown"),
    }

    endpoint {
      url          = "https://" + coalesce(sys.env("REGION"), "eu") + ".example.com"
      bearer_token = local.file.token.content
    }
  }

OPERATORS

The examples below are evaluated on a host host-1 with Linux, with REGION = "eu" in
the environment, in /etc/weir/config.alloy, with these blocks:

  local.file "sites" {
    filename = "/etc/weir/sites.json"    // [{"name":"north"},{"name":"south"}]
  }

  local.file "token" {
    filename  = "/etc/weir/token"        // s3cr3t
    is_secret = true
  }

`

const manualPrecedence = `
PRECEDENCE

Operators that bind more tightly come first. Operators on the same line have the same
precedence and are evaluated from left to right, powers from right to left. Use
brackets ( ) for another order.

`

// precedenceExamples show what binds more tightly.
var precedenceExamples = about("", "", "",
	`1 + 2 * 3`, `7`,
	`(1 + 2) * 3`, `9`,
	`-2 ^ 2`, `4`,
	`2 ^ 3 ^ 2`, `512`,
	`true || false && false`, `true`,
).examples

const manualFunctions = `
FUNCTIONS

`

const manualModules = `
The name module_path stands for the directory of the file that uses it.

MODULES

A declare defines a component that consists of blocks. Its arguments are the attributes
of that component: inside of the declare, argument.NAME.value is the value. Its exports
are the values that other blocks can refer to. The blocks in a declare see only each
other and the arguments.

  // modules/edge.alloy
  declare "scrape" {
    argument "targets" { }

    argument "forward_to" { }

    argument "interval" {
      optional = true
      default  = "15s"
    }

    prometheus.scrape "default" {
      targets         = argument.targets.value
      scrape_interval = argument.interval.value
      forward_to      = argument.forward_to.value
    }
  }

import.file gives the declares of a file, or of all files of a directory, a namespace:
its label. import.string does the same with text that a component exports, for example
from remote.http, and import.scripts with a directory of scripts. foreach instantiates
its template once per item of a collection: var names the item inside of the template,
and id the field that identifies it, so that items that stay are not restarted.

  // config.alloy
  import.file "edge" {
    filename = "modules/edge.alloy"
  }

  foreach "sites" {
    collection = [
      { name = "north", address = "10.1.0.1:9100" },
      { name = "south", address = "10.2.0.1:9100" },
    ]
    var = "site"
    id  = "name"

    template {
      edge.scrape "default" {
        targets    = [{ __address__ = site.address, job = site.name }]
        forward_to = [prometheus.echo.default.receiver]
      }
    }
  }

  prometheus.echo "default" { }

'weir components declare', 'weir components foreach' and 'weir components import.file'
have all attributes of these blocks.

OTHER LANGUAGES IN A CONFIG

Some attributes are strings in another language: expressions of expr.filter, expr.set
and expr.route ('weir help expr'), regular expressions (RE2), which relabel rules match
against the whole value, and LogQL in loki.process. Scripts are blocks of their own
('weir help scripts').
`

// manualWidth is how many columns a line of a description has.
const manualWidth = 82

// write writes a topic: how it is written, what it is, and its examples.
func (t topic) write(b *strings.Builder) {
	fmt.Fprintf(b, "  %s\n", t.form)
	col := 0
	for _, w := range strings.Fields(t.doc) {
		switch n := len([]rune(w)); {
		case col == 0:
			b.WriteString("      ")
			col = 6 + n
		case col+1+n > manualWidth:
			b.WriteString("\n      ")
			col = 6 + n
		default:
			b.WriteByte(' ')
			col += 1 + n
		}
		b.WriteString(w)
	}
	b.WriteByte('\n')
	for _, x := range t.examples {
		x.write(b, 10)
	}
}

// write writes an example; a result that does not fit is on the next line.
func (x example) write(b *strings.Builder, indent int) {
	if len(x.source)+len(x.result)+indent > manualWidth {
		fmt.Fprintf(b, "%*s%s\n%*s→ %s\n", indent, "", x.source, indent+4, "", x.result)
		return
	}
	fmt.Fprintf(b, "%*s%-*s → %s\n", indent, "", 46-indent, x.source, x.result)
}
