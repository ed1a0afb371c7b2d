"""What every connection to a framework, a protocol or an agent needs: recording each message once, and never costing a run its answer."""
