//go:build integration

package integration

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// TestUIAllowed: a page that comes over a network cannot change anything without edit, and says why.
// Without live data, the page shows no log and no messages of nodes.
func TestUIAllowed(t *testing.T) {
	_, b, dir := startUI(t)
	config := filepath.Join(dir, "config.alloy")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	const script = "node/my.tidy.default?tab=script"
	const disabled = `[...document.querySelectorAll("button")].some(e => e.textContent.startsWith("Roll back") && e.disabled)`
	const enabled = `[...document.querySelectorAll("button")].some(e => e.textContent.startsWith("Roll back") && !e.disabled)`
	write(t, filepath.Join(dir, "scripts/my/tidy.lua"), tidyScript("shop"))
	b.view(script)
	b.await("the older version", enabled)

	// As a proxy on this machine passes requests on.
	b.run(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"X-Forwarded-For": "10.0.0.2"}})
		return err
	}))
	write(t, config, string(text)+"\n// changed\n")
	b.await("the button is disabled", disabled)
	b.shows("Changes over the network are off. To allow them, set edit = true in the block ui of the config.")
	b.await("reloads are off", `[...document.querySelectorAll("button")].some(e => e.textContent == "Reload" && e.disabled && e.title.startsWith("Changes over the network are off"))`)
	b.accessible("the disabled buttons")
	b.screenshot("changes-off")
	b.resize(400, 900)
	b.narrow("script")
	b.screenshot("changes-off-400")
	b.resize(1300, 900)

	write(t, config, string(text)+"\nui {\n\tlive_data = false\n\tedit = true\n}\n")
	b.await("the button is enabled", enabled)
	b.click("Roll back to this version")
	b.shows("The node returns to version")
	b.complaints("403")
	b.view("log")
	b.shows("live data is off: set live_data = true")
	b.screenshot("log-off")
	b.view("build")
	b.shows("Live data is off, so the log and a support bundle")
	b.view("")
	b.shows("(hidden: live_data is off in the block ui)")
	b.screenshot("messages-off")
}
