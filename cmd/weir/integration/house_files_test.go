//go:build integration

package integration

// The hosts of a kind of discovery are targets 11 and 12, 21 and 22, …; those of
// the tenants are 91, ….
const (
	houseModule = `
declare "scrape" {
  argument "targets" { }

  argument "forward_to" { }

  declare "mark" {
    argument "forward_to" { }

    prometheus.relabel "m" {
      forward_to = argument.forward_to.value

      rule {
        source_labels = ["__name__"]
        regex         = "load_flag"
        target_label  = "m"
        replacement   = "MARK"
      }
    }

    export "receiver" {
      value = prometheus.relabel.m.receiver
    }
  }

  prometheus.scrape "s" {
    targets         = argument.targets.value
    job_name        = "load"
    scrape_interval = "500ms"
    scrape_timeout  = "500ms"
    forward_to      = [mark.in.receiver]
  }

  mark "in" {
    forward_to = argument.forward_to.value
  }
}
`
	houseBoth = `
import.scripts "old" {
  path = "../v1"
}

import.scripts "new" {
  path = "../v2"
}

declare "both" {
  argument "forward_to" { }

  prometheus.relabel "split" {
    forward_to = [old.demo.mark.x.receiver, new.demo.mark.x.receiver]
  }

  old.demo.mark "x" {
    forward_to = argument.forward_to.value
  }

  new.demo.mark "x" {
    forward_to = argument.forward_to.value
  }

  export "receiver" {
    value = prometheus.relabel.split.receiver
  }
}
`
	houseSink = `
declare "sink" {
  argument "url" { }

  prometheus.remote_write "out" {
    endpoint {
      url = argument.url.value
    }
  }

  prometheus.relabel "c" {
    forward_to = [prometheus.remote_write.out.receiver]

    rule {
      source_labels = ["__name__"]
      regex         = "load_flag"
      target_label  = "c"
      replacement   = "MARK"
    }
  }

  export "receiver" {
    value = prometheus.relabel.c.receiver
  }
}
`
	houseConfig = `
import.file "m" {
  filename = "../mods"
}

local.file "sink" {
  filename = "DIR/sink.alloy"
}

import.string "s" {
  content = local.file.sink.content
}

s.sink "default" {
  url = "URL/api/v1/write"
}

m.both "x" {
  forward_to = [s.sink.default.receiver]
}

foreach "targets" {
  collection     = array.concat(COLLECTION)
  var            = "target"
  id             = "target"
  enable_metrics = true

  template {
    m.scrape "one" {
      targets    = [target]
      forward_to = [m.both.x.receiver]
    }
  }
}

local.file "tenants" {
  filename = "DIR/tenants.json"
}

foreach "tenants" {
  collection     = encoding.from_json(local.file.tenants.content)
  var            = "tenant"
  id             = "name"
  enable_metrics = true

  template {
    prometheus.scrape "one" {
      targets         = [{ __address__ = "ADDRESS", __metrics_path__ = "/" + tenant.target + "/metrics", target = tenant.target }]
      job_name        = "load"
      scrape_interval = "500ms"
      scrape_timeout  = "500ms"
      forward_to      = [prometheus.remote_write.out.receiver]
    }

    prometheus.remote_write "out" {
      external_labels = { tenant = tenant.name }

      endpoint {
        url     = "TENANTS"
        headers = { "X-Scope-OrgID" = tenant.name }
      }
    }
  }
}
`
	houseDiscovery = `
discovery.KIND "x" {
  ARGS
}

discovery.relabel "KIND" {
  targets = discovery.KIND.x.targets

  rule {
    source_labels = ["__address__"]
    regex         = "127\\.0\\.0\\.(\\d):.*"
    target_label  = "target"
    replacement   = "NUMBER$1"
  }

  rule {
    source_labels = ["target"]
    target_label  = "__metrics_path__"
    replacement   = "/$1/metrics"
  }
}
`
)
