package main

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/spf13/cobra"

	"github.com/weir-run/weir/natives/loki/logql"
	"github.com/weir-run/weir/scripting/registry"
)

func sbomCommand(t *terminal) *cobra.Command {
	var dir, storage string
	cmd := &cobra.Command{
		Use:   "sbom [CONFIG]",
		Short: "Write a bill of materials in the CycloneDX format",
		Long: `Write a software bill of materials (SBOM) as CycloneDX 1.6 in JSON: weir, the Go
modules that it was built from, and, with a config, the packages that the config
imports and the scripts that its blocks use, with their digests, licences and
signers. The same weir and config have the same bill, byte for byte. Nothing is
started.`,
		Example: `  weir sbom > weir.cdx.json
  weir sbom /etc/weir | jq -r '.components[] | .name + " " + .version'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("sbom takes one config, not %d; several files of a directory are one config", len(args))
			}
			return nil
		},
		ValidArgsFunction: configFiles(oneConfig),
		RunE: failed(func(_ *cobra.Command, args []string) error {
			bom, err := modulesBOM()
			if err == nil && len(args) == 1 {
				err = addConfig(t, bom, args[0], dir, storage)
			}
			if err != nil {
				return err
			}
			return cdx.NewBOMEncoder(t.out, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, cdx.SpecVersion1_6)
		}),
	}
	cmd.Flags().StringVar(&dir, "scripts", "", "folder of scripts (default: scripts next to the config)")
	storageFlag(cmd.Flags(), &storage)
	return cmd
}

// modulesBOM returns the bill of this program and of the modules that are linked into it.
func modulesBOM() (*cdx.BOM, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil, errors.New("cannot list the modules: weir was built without module information")
	}
	self := cdx.Component{
		BOMRef: golangURL(info.Main.Path, version), Type: cdx.ComponentTypeApplication, Name: "weir", Version: version,
		PackageURL: golangURL(info.Main.Path, version), Licenses: licenses(spdx()),
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &self}
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	modules := []cdx.Component{{BOMRef: golangURL("std", goVersion), Type: cdx.ComponentTypeLibrary, Name: "std", Version: goVersion, PackageURL: golangURL("std", goVersion)}}
	for _, m := range info.Deps {
		for m.Replace != nil {
			m = m.Replace
		}
		c := cdx.Component{BOMRef: golangURL(m.Path, m.Version), Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: golangURL(m.Path, m.Version)}
		// h1 is the SHA-256 of the list of the files' SHA-256.
		if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(sum) > 0 {
			c.Hashes = sha256Hash(hex.EncodeToString(sum))
		}
		modules = append(modules, c)
	}
	bom.Components = &modules
	dependOn(bom, self.BOMRef, modules)
	return bom, nil
}

// spdx returns the licence of this program as an SPDX expression.
func spdx() string {
	if logql.Linked {
		return "Apache-2.0 AND AGPL-3.0-only"
	}
	return "Apache-2.0"
}

func golangURL(path, version string) string {
	if version == "" {
		return "pkg:golang/" + path
	}
	return "pkg:golang/" + path + "@" + version
}

func sha256Hash(digits string) *[]cdx.Hash {
	return &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: digits}}
}

// licenses returns a licence for a bill: an SPDX expression, or a name.
func licenses(text string) *cdx.Licenses {
	if text == "" { // remote content that is no package has none
		return nil
	}
	if text == "proprietary" {
		return &cdx.Licenses{{License: &cdx.License{Name: text}}}
	}
	return &cdx.Licenses{{Expression: text}}
}

// dependOn adds the components that the component ref uses.
func dependOn(bom *cdx.BOM, ref string, on []cdx.Component) {
	refs := []string{}
	for _, c := range on {
		refs = append(refs, c.BOMRef)
	}
	if bom.Dependencies == nil {
		bom.Dependencies = &[]cdx.Dependency{}
	}
	*bom.Dependencies = append(*bom.Dependencies, cdx.Dependency{Ref: ref, Dependencies: &refs})
}

// addConfig adds a config with its packages and scripts to a bill.
func addConfig(t *terminal, bom *cdx.BOM, path, dir, storage string) error {
	in, err := importedBy(t, path, storage)
	if err != nil {
		return err
	}
	packages, err := in.listed()
	if err != nil {
		return printAll(t, err)
	}
	var parts []cdx.Component
	for _, p := range packages {
		properties := []cdx.Property{{Name: "weir:package:path", Value: p.Path}, {Name: "weir:package:lock", Value: p.Lock}, {Name: "weir:package:signer", Value: p.Signer.String()}}
		for _, n := range p.Needs {
			properties = append(properties, cdx.Property{Name: "weir:package:needs", Value: n})
		}
		name := cmp.Or(p.Name, p.Path)
		parts = append(parts, cdx.Component{
			BOMRef: "package:" + p.Path, Type: cdx.ComponentTypeLibrary, Name: name, Version: p.Version, Licenses: licenses(p.License),
			Hashes: sha256Hash(strings.TrimPrefix(p.Digest, "sha256:")), Properties: &properties,
		})
	}
	files, err := scriptFiles(path, dir, storage)
	if err != nil {
		return err
	}
	for _, f := range files {
		from := "user"
		if f.Shipped {
			from = "weir"
		}
		parts = append(parts, cdx.Component{
			BOMRef: "script:" + f.Name, Type: cdx.ComponentTypeFile, Name: f.Name, Hashes: sha256Hash(f.SHA256),
			Properties: &[]cdx.Property{{Name: "weir:script:origin", Value: from}},
		})
	}
	config := cdx.Component{BOMRef: "config:" + path, Type: cdx.ComponentTypeData, Name: path}
	*bom.Components = append(*bom.Components, append(parts, config)...)
	dependOn(bom, config.BOMRef, parts)
	return nil
}

// scriptFiles returns the source files of the scripts that the blocks of a config use,
// sorted by name.
func scriptFiles(path, dir, storage string) ([]registry.AuditFile, error) {
	e, err := lookingEngine(path, dir, storage, scriptsUse{})
	if err != nil {
		return nil, err
	}
	defer e.close()
	blocks, _, ds := e.Blocks(path)
	if ds.HasErrors() {
		return nil, ds.Err()
	}
	var out []registry.AuditFile
	for _, b := range blocks {
		if about, ok := b.About.(*registry.Audit); ok {
			out = append(out, about.Files...)
		}
	}
	slices.SortFunc(out, func(a, b registry.AuditFile) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(out, func(a, b registry.AuditFile) bool { return a.Name == b.Name }), nil
}
