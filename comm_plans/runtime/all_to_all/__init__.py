"""All-to-all on a live torch process group, by the backend's own call or by a schedule made for the traffic at hand."""
