"""`partita migrate`: a lab that shows what another group protocol changes for a program or its settings."""
