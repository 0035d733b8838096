"""What tests stand on: contract suites, fakes and crash tools, for your adapters as for ours."""
