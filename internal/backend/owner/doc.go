// Package owner keeps this boot the owner of one control server: it holds the
// client and the credential, and renews the ownership for as long as the process
// lives. Renewal is a plain ticker on purpose: it says that this very process is
// alive, which nobody else can say for it.
package owner
