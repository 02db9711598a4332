package scripttest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/natives"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/stdlib"
)

// A config with a native source, a script and a native sink runs in the real engine. The
// endpoint of the sink fails twice.
func ExampleOpenPipeline() {
	p, err := scripttest.OpenPipeline(context.Background(), scripttest.PipelineOptions{
		Pipelines: scripttest.Pipelines{Natives: component.NewList(natives.All()...)},
		Languages: []scripting.Language{lua.New()},
		Modules:   stdlib.Modules(),
		Config:    "testdata/pipeline/config.alloy",
		Exports:   map[string]string{"discovery.http.shop": `targets = [{"__address__" = "shop:8080"}]`},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	sink, err := p.Sink("prometheus.remote_write.default")
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = sink.Fail("503 Service Unavailable", 2)
	if err := p.Send("prometheus.scrape.shop", `up{instance="shop:8080"} 1`); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("at first: %q\n", sink.Received())
	if err := p.Advance(3 * time.Second); err != nil {
		fmt.Println(err)
	}
	fmt.Print("after the retries: ", sink.Received())
	// Output:
	// at first: ""
	// after the retries: up{instance="shop:8080",team="core"} 1 1735689600000
}

// TestOpenPipelineErrors: mistakes are errors, and a pipeline leaves no files.
func TestOpenPipelineErrors(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(dir, "tmp"))
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "c.alloy")
	open := func(config string, o scripttest.PipelineOptions) (*scripttest.Pipeline, error) {
		t.Helper()
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		o.Natives, o.Config = component.NewList(natives.All()...), path
		return scripttest.OpenPipeline(t.Context(), o)
	}
	wants := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	_, err := open("nothing {", scripttest.PipelineOptions{})
	wants(err, "c.alloy:1:")
	const config = `
discovery.http "a" {
	url = "http://localhost:1/"
}

prometheus.scrape "a" {
	targets    = discovery.http.a.targets
	forward_to = [prometheus.echo.a.receiver]
}

prometheus.echo "a" { }
`
	_, err = open(config, scripttest.PipelineOptions{Exports: map[string]string{"discovery.http.a": "target = ["}})
	wants(err, "cannot use the exports of the test")
	_, err = open(config, scripttest.PipelineOptions{Exports: map[string]string{"discovery.http.b": ""}})
	wants(err, "there is no node discovery.http.b")
	_, err = scripttest.OpenPipeline(t.Context(), scripttest.PipelineOptions{Config: path})
	wants(err, "there are no native components")

	p, err := open(config, scripttest.PipelineOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Sink("prometheus.scrape.a")
	wants(err, "cannot use prometheus.scrape.a as a sink")
	_, err = p.Waiting("prometheus.echo.a")
	wants(err, "it is no native source")
	wants(p.Send("prometheus.scrape.b", "up 1"), "there is no node prometheus.scrape.b")
	wants(p.Advance(-time.Second), "up to a year")
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	wants(p.Send("prometheus.scrape.a", "up 1"), "cannot use this pipeline")
	left, err := os.ReadDir(filepath.Join(dir, "tmp"))
	if err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}
