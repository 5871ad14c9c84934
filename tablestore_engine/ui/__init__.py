"""Pictures of tables: a page on 127.0.0.1 and the same page as one file. Read-only, without a JVM.

Path       cli/ui_page.py starts page_server.py, which checks host, token and method → page_answers.py finds the answer
           to a route → table_facts.py reads the parts of a table, page_section.py records the error of a part →
           page_json.py makes JSON, from which the script in assets/ draws. html_report.py writes one file.
"""
