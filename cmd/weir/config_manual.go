package main

import "github.com/weir-run/weir/engine/config"

// configManual describes the config language. Tests load its blocks and evaluate
// the examples of config.Language.
func configManual() string { return configManualHead + config.Language() + configManualModules }

const configManualHead = `The config language of weir is that of Grafana Alloy. A config is a file, or a
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

`

const configManualModules = `
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
