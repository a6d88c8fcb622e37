package dashboard

import (
	"fmt"
	"slices"
)

// Bank is the dashboard of all services and replicas, as a file for Grafana: deploy/grafana/dashboards/banking-saga.json. Which services there
// are it asks Prometheus, so that a new one shows by itself.
func Bank() ([]byte, error) {
	s := scope{jobs: `job=~"$service"`, alerts: `ALERTS{alertstate="firing"}`}
	d := framed(s, variables(
		labelValues("service", "Service", `label_values(messaging_session_up, job)`),
		queues(s)))
	d.UID, d.Title, d.Tags = "banking-saga", "Banking saga", []string{"banking"}
	d.Description = "Transfers, messages, outboxes, quarantines and the ledger, over all services and replicas."
	d.Panels = place([]section{health(transfers), messaging, outbox, quarantine, ledger, process}, s)
	return d.file()
}

// Service is the dashboard of one service, as a file for Grafana. Name is the service's, under which Prometheus scrapes it and with which its
// queues begin.
func Service(name string) ([]byte, error) {
	job := fmt.Sprintf("job=%q", name)
	s := scope{
		jobs:   job,
		alerts: fmt.Sprintf(`ALERTS{alertstate="firing", %s} or ALERTS{alertstate="firing", queue=~"%s[.].*"}`, job, name),
	}
	d := framed(s, variables(queues(s)))
	d.UID, d.Title, d.Tags = "service-"+name, "Service "+name, []string{"banking", "service"}
	d.Description = "Messages, outbox and quarantine of " + name + ", over all its replicas. All services together: Banking saga."
	d.Panels = place([]section{health(), messaging, outbox, quarantine, process}, s)
	return d.file()
}

// framed is a dashboard without its panels.
func framed(s scope, variables []variable) dashboard {
	return dashboard{
		SchemaVersion: 39, GraphTooltip: 1, Refresh: "30s", Timezone: "browser", Time: timeRange{"now-1h", "now"},
		Links: []link{{Title: "Other dashboards", Type: "dashboards", Tags: []string{"banking"}, AsDropdown: true, KeepTime: true}},
		Annotations: annotations{[]annotation{{
			Name: "Alerts", Datasource: prometheus, Enable: true, IconColor: "red", Expr: s.alerts, TitleFormat: "{{alertname}} {{queue}}{{job}}", Step: "60s",
		}}},
		Templating: templating{variables},
	}
}

func variables(others ...variable) []variable {
	return slices.Concat([]variable{{Name: "datasource", Label: "Data source", Type: "datasource", Query: "prometheus", Refresh: 1}}, others)
}

// queues are those that a service consumes and its quarantines, which have other names.
func queues(s scope) variable {
	metrics := `__name__=~"messaging_deliveries_total|quarantine_counted_timestamp_seconds"`
	return labelValues("queue", "Queue", fmt.Sprintf(`label_values({%s, %s}, queue)`, metrics, s.jobs))
}

// labelValues is a variable of which several values, or all, can be chosen.
func labelValues(name, label, query string) variable {
	all := choice{[]string{"All"}, []string{"$__all"}}
	return variable{
		Name: name, Label: label, Type: "query", Datasource: &prometheus, Query: query, Definition: query, Refresh: 2, Sort: 1,
		Multi: true, IncludeAll: true, Current: &all,
	}
}
