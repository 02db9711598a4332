package remotewrite

import (
	"errors"

	"github.com/weir-run/weir/engine/component"
)

// The signing of requests for clouds is not done yet. The blocks are known, so
// that the refusal says so instead of calling them unknown.

// SigV4 signs requests for AWS.
type SigV4 struct {
	// Not supported yet.
	Region string `alloy:"region,attr,optional"`
	// Not supported yet.
	AccessKey string `alloy:"access_key,attr,optional"`
	// Not supported yet.
	SecretKey component.Secret `alloy:"secret_key,attr,optional"`
	// Not supported yet.
	Profile string `alloy:"profile,attr,optional"`
	// Not supported yet.
	RoleARN string `alloy:"role_arn,attr,optional"`
	// Not supported yet.
	ExternalID string `alloy:"external_id,attr,optional"`
	// Not supported yet.
	UseFIPSSTSEndpoint bool `alloy:"use_fips_sts_endpoint,attr,optional"`
	// Not supported yet.
	ServiceName string `alloy:"service_name,attr,optional"`
}

// Validate refuses the block.
func (*SigV4) Validate() error { return errors.New("sigv4 is not supported yet") }

// AzureAD gets tokens from Azure.
type AzureAD struct {
	// Not supported yet.
	Cloud string `alloy:"cloud,attr,optional"`
	// Not supported yet.
	Scope string `alloy:"scope,attr,optional"`
	// Not supported yet.
	ManagedIdentity *AzureIdentity `alloy:"managed_identity,block,optional"`
	// Not supported yet.
	WorkloadIdentity *AzureIdentity `alloy:"workload_identity,block,optional"`
	// Not supported yet.
	OAuth *AzureIdentity `alloy:"oauth,block,optional"`
	// Not supported yet.
	SDK *AzureIdentity `alloy:"sdk,block,optional"`
}

// Validate refuses the block.
func (*AzureAD) Validate() error { return errors.New("azuread is not supported yet") }

// AzureIdentity is who asks Azure for a token.
type AzureIdentity struct {
	// Not supported yet.
	ClientID string `alloy:"client_id,attr,optional"`
	// Not supported yet.
	ClientSecret component.Secret `alloy:"client_secret,attr,optional"`
	// Not supported yet.
	TenantID string `alloy:"tenant_id,attr,optional"`
	// Not supported yet.
	TokenFilePath string `alloy:"token_file_path,attr,optional"`
}

// GoogleIAM gets tokens from Google.
type GoogleIAM struct {
	// Not supported yet.
	CredentialsFile string `alloy:"credentials_file,attr,optional"`
}

// Validate refuses the block.
func (*GoogleIAM) Validate() error { return errors.New("google_iam is not supported yet") }
